import { writeFileSync } from "node:fs";
import { NOT_MADE, type Tally, uncovered } from "../coverage.ts";
import { FAULTS } from "../faults.ts";
import { type MutantState, mutantsSection } from "../mutants/index.ts";
import { SIGHTINGS } from "../sightings.ts";
import type { Failure } from "./outcome.ts";
import type { CampaignTally } from "./tally.ts";

export interface ReportFacts {
  readonly tally: CampaignTally;
  readonly mutants: MutantState;
}
export function writePage(file: string, facts: ReportFacts): void {
  writeFileSync(file, report(facts));
}

/** `docs/reference/simulation.md`: results of a campaign. */
export function report({ tally, mutants }: ReportFacts): string {
  const { done, failures, fixed, revisions, coverage, sums } = tally;
  const hours = (sums.virtualMs / 3_600_000).toFixed(1);
  const none = uncovered(coverage);
  return `# Results of the simulation

Written by \`npm run simulate -- --report\` and \`npm run mutate -- --keep\`; do not edit. How it works:
[the design](../design/simulation.md). [simulation.json](simulation.json) has the same data, from which a campaign continues:
\`npm run simulate -- --seeds 10000 --state docs/reference/simulation.json --report docs/reference/simulation.md\`;
[mutants.json](mutants.json) has the state of the mutants.

| | |
|---|---|
| Seeds | ${done.length} (${Math.min(...done)} to ${Math.max(...done)}) |
| By revision | ${Object.entries(revisions)
    .map(([name, seeds]) => `${name}: ${seeds}`)
    .join(", ")} |
| Seeds that break a rule | ${failures.length} |
| Seeds that broke one at an earlier revision, fixed since | ${fixed.length} |
| Simulated time | ${hours} h |
| Launcher processes | ${sums.launchers} |
| Checked writes to the tree | ${sums.writes} |
| Requests: used, failed, cancelled | ${sums.used}, ${sums.failed}, ${sums.cancelled} |
| Requests whose executor died, or whose nodes an operator changed | ${sums.died}, ${sums.spoiled} |
| Leases granted | ${sums.leases} |
| Never happened | ${none.length === 0 ? "nothing" : none.join("; ")} |

${listed("Failures", failures)}${listed("Fixed", fixed)}${mutantsSection(mutants)}
## Faults

| Fault | What it is | Times |
|---|---|---|
${countRows(FAULTS, coverage.faults)}
## Special courses

| What | What it is | Times |
|---|---|---|
${countRows(SIGHTINGS, coverage.sightings)}
## State transitions

${rows("Transition", coverage.transitions)}
Cannot occur: ${Object.entries(NOT_MADE)
    .map(([name, why]) => `${name} (${why})`)
    .join("; ")}.

## Crashes at named effects

${rows("Effect", coverage.crashes)}`;
}

function listed(title: string, failures: readonly Failure[]): string {
  const lines = failures.map(({ seed, rule }) => `- seed ${seed}: ${rule}\n`);
  return lines.length === 0 ? "" : `## ${title}\n\n${lines.join("")}\n`;
}

function countRows(names: Readonly<Record<string, string>>, tally: Tally): string {
  return Object.entries(names)
    .map(([name, what]) => `| ${name} | ${what} | ${tally[name] ?? 0} |\n`)
    .join("");
}

function rows(head: string, tally: Tally): string {
  const lines = Object.entries(tally).map(([name, times]) => `| ${name} | ${times} |\n`);
  return `| ${head} | Times |\n|---|---|\n${lines.join("")}`;
}
