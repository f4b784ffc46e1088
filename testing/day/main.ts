import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { type DayResult, day } from "./day.ts";

const HELP = `node tools/run.mjs testing/day/main.ts [options]

  --jobs N     jobs of all clients (default 2000)
  --seed N     of the kills and of the jobs (default 1)
  --logs FILE  where the logs of the killed processes are kept
  --json       the result as JSON

After Ctrl-C or SIGTERM no more job begins, and the day is judged as it was; the second time it ends at once.
Exit code 0: every promise was kept; 1: one was not; 2: wrong options.
`;

const { values } = parseArgs({
  options: {
    jobs: { type: "string", default: "2000" },
    seed: { type: "string", default: "1" },
    logs: { type: "string" },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
const [jobs, seed] = [Number(values.jobs), Number(values.seed)];
if (![jobs, seed].every((value) => Number.isSafeInteger(value) && value > 0)) {
  console.error(`--jobs and --seed are positive numbers\n\n${HELP}`);
  process.exit(2);
}
const note = (what: string) => console.error(`${new Date().toISOString().slice(11, 19)} ${what}`);
const evening = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.on(signal, () => {
    // With "exit" all that was started ends.
    if (evening.signal.aborted) process.exit(1);
    note("evening: no more job begins");
    evening.abort();
  });
const { logs, ...result } = await day({ jobs, seed, evening: evening.signal, note });
if (values.logs !== undefined) writeFileSync(values.logs, logs.join("\n"));
console.log(values.json ? JSON.stringify(result) : shown(result));
process.exit(result.faults.length === 0 ? 0 : 1);

function shown({ rows, faults, nodes, jobs, kills, seconds }: Omit<DayResult, "logs">): string {
  const of = (counts: object) =>
    Object.entries(counts)
      .map(([name, count]) => `${name} ${count}`)
      .join(", ");
  const s = (ms: number) => (ms / 1_000).toFixed(1);
  const lines = [
    ["client", "priority", "requests", "served", "median s", "p95 s", "longest s", "overtaken"],
    ...rows.map((row) => [
      ...[row.client, row.priority, row.requests, row.served],
      ...[s(row.median), s(row.p95), s(row.longest), row.overtaken],
    ]),
  ].map((row) =>
    row
      .map((cell, column) => String(cell).padEnd(column === 0 ? 14 : 10))
      .join("")
      .trimEnd(),
  );
  return [
    `jobs: ${of(jobs)}`,
    `killed: ${of(kills)}; nodes: ${nodes}; ${seconds} s`,
    ...lines,
    ...(faults.length === 0 ? ["every job ran once, nothing is left, no limit was exceeded"] : faults),
  ].join("\n");
}
