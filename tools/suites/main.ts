import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { patience } from "../../testing/patience.ts";
import { QUICK, SLOW } from "./suites.ts";

const HELP = `npm test [-- SUITE... | PATH... | all] [options of vitest]

Without a name: the quick tests (quick). PATH is a part of the path of test files, of whatever suite. Suites that take longer:

${SLOW.map(({ name, about }) => `  ${name.padEnd(10)}${about}`).join("\n")}
  all       everything

Tests that make real slivers: npm run test:slivers. A real OpenStack: npm run test:openstack. A real
Kubernetes: npm run test:kubernetes.
`;

const names = new Set([QUICK, ...SLOW.map(({ name }) => name)]);
const args = process.argv.slice(2);
const words = args.filter((arg) => !arg.startsWith("-"));
if (args.includes("--help")) console.log(HELP);
else {
  if (words.length === 0) console.log(duration());
  const { status } = spawnSync(process.execPath, [vitest(), "run", ...vitestArguments()], {
    stdio: "inherit",
  });
  if (words.length === 0) tellLeftOut();
  process.exitCode = status ?? 1;
}

function vitest(): string {
  return fileURLToPath(new URL("../../node_modules/vitest/vitest.mjs", import.meta.url));
}

/** Suites are projects of Vitest; a part of a path is searched in all of them. */
function vitestArguments(): readonly string[] {
  const suites = words.filter((word) => names.has(word));
  if (words.includes("all")) return args.filter((arg) => arg !== "all");
  const chosen = words.length === 0 ? [QUICK] : suites;
  return [...args.filter((arg) => !names.has(arg)), ...chosen.map((name) => `--project=${name}`)];
}

/** The quick tests take five minutes on two processors that have nothing else to do. */
function duration(): string {
  const minutes = Math.ceil((10 / availableParallelism()) * patience());
  return `The quick tests take about ${minutes} min on this machine, as busy as it is now.`;
}

function tellLeftOut(): void {
  const left = SLOW.map(({ name, about }) => `  npm test -- ${name.padEnd(9)}${about}`).join("\n");
  console.log(`Not run, because they take long (npm test -- all runs them, too):\n${left}`);
}
