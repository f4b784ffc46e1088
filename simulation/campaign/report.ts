import { NOT_MADE, type Tally, uncovered } from "../coverage.ts";
import { FAULTS } from "../faults.ts";
import { SIGHTINGS } from "../sightings.ts";
import type { Failure } from "./outcome.ts";
import type { CampaignTally } from "./tally.ts";

export interface ReportFacts {
  readonly tally: CampaignTally;
  readonly revision: string;
  /** For each build that lacks something: the seed that found it out, with the rule, or undefined. */
  readonly builds: readonly {
    readonly build: string;
    readonly tried: number;
    readonly caught: string | undefined;
  }[];
}

/** `docs/reference/simulation.md`: what a campaign did and found. */
export function report({ tally, revision, builds }: ReportFacts): string {
  const { done, failures, mended, revisions, coverage, sums } = tally;
  const hours = (sums.virtualMs / 3_600_000).toFixed(1);
  const none = uncovered(coverage);
  return `# What the simulation did and found

Written by \`npm run simulate -- --report\` at revision ${revision}; do not edit. How it works:
[the design](../design/simulation.md). [simulation.json](simulation.json) is the same for a machine, from which a campaign goes on:
\`npm run simulate -- --seeds 10000 --state docs/reference/simulation.json --report docs/reference/simulation.md\`.

| | |
|---|---|
| Seeds | ${done.length} (${Math.min(...done)} to ${Math.max(...done)}) |
| By revision | ${Object.entries(revisions)
    .map(([name, seeds]) => `${name}: ${seeds}`)
    .join(", ")} |
| Seeds that break a rule | ${failures.length} |
| Seeds that broke one at an earlier revision, mended since | ${mended.length} |
| Simulated time | ${hours} h |
| Launcher processes | ${sums.launchers} |
| Writes to the tree that were checked | ${sums.writes} |
| Requests: used, failed, cancelled | ${sums.used}, ${sums.failed}, ${sums.cancelled} |
| Requests whose executor died, or whose nodes an operator took | ${sums.died}, ${sums.spoiled} |
| Leases granted | ${sums.leases} |
| Never happened | ${none.length === 0 ? "nothing" : none.join("; ")} |

${listed("Failures", failures)}${listed("Mended", mended)}## Builds that lack something

Each must be caught within 200 seeds.

| Without | Seeds tried | Caught by |
|---|---|---|
${builds.map(({ build, tried, caught }) => `| ${build} | ${tried} | ${caught ?? "nobody"} |\n`).join("")}
## Faults

| Fault | What it is | Times |
|---|---|---|
${told(FAULTS, coverage.faults)}
## What else was seen

| What | What it is | Times |
|---|---|---|
${told(SIGHTINGS, coverage.sightings)}
## Changes of state

${rows("Change", coverage.transitions)}
Not made: ${Object.entries(NOT_MADE)
    .map(([name, why]) => `${name} (${why})`)
    .join("; ")}.

## Crashes at named effects

${rows("Where", coverage.crashes)}`;
}

function listed(title: string, failures: readonly Failure[]): string {
  const lines = failures.map(({ seed, rule }) => `- seed ${seed}: ${rule}\n`);
  return lines.length === 0 ? "" : `## ${title}\n\n${lines.join("")}\n`;
}

function told(names: Readonly<Record<string, string>>, tally: Tally): string {
  return Object.entries(names)
    .map(([name, what]) => `| ${name} | ${what} | ${tally[name] ?? 0} |\n`)
    .join("");
}

function rows(head: string, tally: Tally): string {
  const lines = Object.entries(tally).map(([name, times]) => `| ${name} | ${times} |\n`);
  return `| ${head} | Times |\n|---|---|\n${lines.join("")}`;
}
