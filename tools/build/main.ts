/** `npm run build [-- --verify]`: builds the packages into their `dist`; with --verify installs and runs the result. */
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "./build.ts";
import { verify } from "./verify.ts";

const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
try {
  const dists = build(root);
  console.log(`built ${dists.map((dist) => relative(root, dist)).join(", ")}`);
  if (process.argv.includes("--verify"))
    for (const what of verify(root, dists)) console.log(`works when installed: ${what}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
