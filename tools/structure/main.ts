/** `npm run structure`: prints violations of the house rules, by folder; exit code 1 if there are any. */
import { fileURLToPath } from "node:url";
import { checkWorkspace } from "./check.ts";
import { render } from "./findings.ts";
import { readWorkspace } from "./workspace.ts";

const root = process.argv[2] ?? fileURLToPath(new URL("../..", import.meta.url));
const workspace = readWorkspace(root);
const findings = checkWorkspace(workspace);
const errors = findings.filter((one) => one.severity === "error").length;
if (findings.length > 0) console.log(render(findings));
console.log(
  `structure: ${workspace.files.length} files in ${workspace.packages.length} packages, ` +
    `${errors} errors, ${findings.length - errors} warnings`,
);
process.exitCode = errors > 0 ? 1 : 0;
