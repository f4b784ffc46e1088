import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { openGitea } from "../connectors/gitea.ts";
import { openGitHub } from "../connectors/github.ts";
import type { Side, Sides } from "../connectors/sides.ts";
import { zuulNodes } from "../connectors/zuul.ts";
import type { Figure, Scenario } from "../lib/scenario.ts";
import { median, percentile, round } from "../lib/statistics.ts";

/** Jobs of each side in one round. */
const JOBS = 6;
const LIMIT_MS = 60_000;
const SETTLE_MS = 1_500;
/** Between two turns of zuul-launcher's loop (zuul/launcher/server.py, MAX_SLEEP): a node of its own that is ready waits for one, too. */
const ZUUL_LOOP_MS = 1_000;

/**
 * From the call that queues a job until its first line runs on a node that is ready. The floor is what a runner for one job costs without any
 * pool: the same notice from the CI, the same registration, one ssh connection to a known machine and the same runner's start, by a few
 * lines that keep no state. What remains is the lease, and the care with which a program is started.
 *
 * Of Zuul it is the connector's part: from the record of a node, as zuul-launcher makes it, until it is ready. It is compared with a turn of the
 * launcher's loop: what is shorter costs a job at most one turn.
 */
export const connectors: Scenario = {
  name: "connectors",
  about:
    "from a queued job to its start on a ready node: Gitea and GitHub against a runner without a pool, Zuul against its launcher's loop",
  async *run({ rounds }): AsyncGenerator<Figure> {
    for (const [system, open] of [["gitea", openGitea] as const, ["github", openGitHub] as const]) {
      const sides = await open();
      try {
        yield { scenario: "connectors", system, ...(await measure(sides, rounds)) };
      } finally {
        await sides.close();
      }
    }
    const ready = await zuulNodes(rounds * JOBS);
    yield {
      scenario: "connectors",
      system: "zuul",
      jobs: ready.length,
      ms: round(median(ready)),
      loopMs: ZUUL_LOOP_MS,
      ratio: round(median(ready) / ZUUL_LOOP_MS, 3),
      ms90: round(percentile(ready, 0.9)),
    };
  },
};

async function measure({ ours, floor }: Sides, rounds: number) {
  // Compilers, caches and the first sessions.
  for (const side of [ours, floor, ours, floor]) await startOf(side);
  const taken = new Map<Side, number[]>([ours, floor].map((side) => [side, []]));
  for (let job = 0; job < rounds * JOBS; job++)
    for (const side of job % 2 === 0 ? [ours, floor] : [floor, ours])
      taken.get(side)!.push(await startOf(side));
  const [mine, least] = [taken.get(ours)!, taken.get(floor)!];
  return {
    jobs: mine.length,
    ms: round(median(mine)),
    floorMs: round(median(least)),
    ratio: round(median(mine) / median(least), 3),
    ms90: round(percentile(mine, 0.9)),
    floorMs90: round(percentile(least, 0.9)),
  };
}

/** Milliseconds from the call that queues a job until it begins. */
async function startOf({ file, queue }: Side): Promise<number> {
  const lines = () => readFileSync(file, "utf8").split("\n").filter(Boolean);
  const before = lines().length;
  const queued = Date.now();
  await queue();
  for (const limit = performance.now() + LIMIT_MS; lines().length === before; await sleep(20))
    if (performance.now() > limit)
      throw new Error(`a job for ${file} has not begun within ${LIMIT_MS / 1_000} s`);
  const ms = Number(lines().at(-1)) / 1e6 - queued;
  // The job ends, its runner is forgotten, and its node is returned: the next one has the machine for itself.
  await sleep(SETTLE_MS);
  return ms;
}
