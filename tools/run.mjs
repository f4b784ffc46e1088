// Runs a script with the Node 24 that the dev dependency `node` installs, whichever Node started this file.
// Plain JavaScript: it must run with the old Node of a fresh machine.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const WANTED = 24;
const own = fileURLToPath(new URL("../node_modules/node/bin/node", import.meta.url));
const current = Number(process.versions.node.split(".")[0]);
const node = existsSync(own) ? own : current === WANTED ? process.execPath : undefined;
if (node === undefined) {
  console.error(
    `nodeyard: needs Node ${WANTED}, this is ${process.version}, and node_modules/node/bin/node is missing ` +
      "(its install script did not run). Run: npm rebuild node --ignore-scripts=false",
  );
  process.exit(1);
}
// Tests start the program hundreds of times: with its files compiled before, each start takes a third of the processor time (0.3 s, not 0.9).
const compiled = fileURLToPath(new URL("../node_modules/.cache/node-compile", import.meta.url));
const child = spawn(node, ["--disable-warning=ExperimentalWarning", ...process.argv.slice(2)], {
  stdio: "inherit",
  env: { NODE_COMPILE_CACHE: compiled, ...process.env },
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  // A terminal sends Ctrl-C to the child too: if it were passed on, it would count as the second one, which forces the end.
  process.on(signal, () => (signal === "SIGINT" && process.stdin.isTTY) || child.kill(signal));
}
child.on("error", (error) => {
  console.error(
    `nodeyard: cannot start ${node} (${error.message}). Run: npm rebuild node --ignore-scripts=false`,
  );
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code ?? 1);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
