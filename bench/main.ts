/**
 * `npm run bench [-- SCENARIO...] [--rounds N] [--minutes N]`: one JSON line per figure, then one per limit of these figures. Exit code 1 if
 * a limit was missed or a scenario could not be run. `--minutes`: for how long memory is watched. `--nodes N --launchers N`: the largest tree
 * of `scale`. `--beside FOLDER`: in turn with another
 * checkout, one line for each field of both.
 */
import { parseArgs } from "node:util";
import { messageOf } from "@nodeyard/runtime";
import { besides } from "./beside.ts";
import type { Figure, Scenario } from "./lib/scenario.ts";
import { judge } from "./limits.ts";
import { commands } from "./scenarios/commands.ts";
import { connectors } from "./scenarios/connectors.ts";
import { cycle } from "./scenarios/cycle.ts";
import { floor } from "./scenarios/floor.ts";
import { fullTree } from "./scenarios/full-tree.ts";
import { latency } from "./scenarios/latency.ts";
import { metastatic } from "./scenarios/metastatic.ts";
import { operations } from "./scenarios/operations.ts";
import { page } from "./scenarios/page.ts";
import { planning } from "./scenarios/planning.ts";
import { reuse, staticNodes } from "./scenarios/reuse.ts";
import { scale } from "./scenarios/scale.ts";
import { startup } from "./scenarios/startup.ts";
import { throughput } from "./scenarios/throughput.ts";

const SCENARIOS: readonly Scenario[] = [
  floor,
  operations,
  latency,
  throughput,
  cycle,
  reuse,
  staticNodes,
  metastatic,
  startup,
  fullTree,
  scale,
  planning,
  commands,
  page,
  connectors,
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "5" },
    minutes: { type: "string", default: "10" },
    nodes: { type: "string", default: "10000" },
    launchers: { type: "string", default: "2" },
    beside: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

function chosen(): readonly Scenario[] {
  const unknown = positionals.filter((name) => !SCENARIOS.some((scenario) => scenario.name === name));
  if (values.help || unknown.length > 0) {
    for (const name of unknown) process.stderr.write(`no scenario ${name}\n`);
    for (const { name, about } of SCENARIOS) process.stdout.write(`${name.padEnd(12)} ${about}\n`);
    process.exit(unknown.length > 0 ? 2 : 0);
  }
  return SCENARIOS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
}

async function main(): Promise<void> {
  const figures: Figure[] = [];
  const [rounds, minutes] = [Number(values.rounds), Number(values.minutes)];
  const [nodes, launchers] = [Number(values.nodes), Number(values.launchers)];
  let failed = false;
  const scenarios = chosen();
  if (values.beside !== undefined) {
    const names = scenarios.map(({ name }) => name);
    try {
      for await (const line of besides(values.beside, names, rounds))
        process.stdout.write(`${JSON.stringify(line)}\n`);
    } catch (error) {
      process.stderr.write(`${messageOf(error)}\n`);
      process.exitCode = 1;
    }
    return;
  }
  for (const scenario of scenarios) {
    try {
      for await (const figure of scenario.run({ rounds, minutes, nodes, launchers })) {
        figures.push(figure);
        process.stdout.write(`${JSON.stringify(figure)}\n`);
      }
    } catch (error) {
      failed = true;
      process.stderr.write(`${scenario.name}: ${error instanceof Error ? error.stack : error}\n`);
    }
  }
  const verdicts = judge(figures);
  for (const verdict of verdicts) process.stdout.write(`${JSON.stringify(verdict)}\n`);
  if (failed || verdicts.some((verdict) => !verdict.ok)) process.exitCode = 1;
}

await main();
