import { runFloor } from "../floor.ts";
import { type Burst, burst, drain } from "../lib/burst.ts";
import { launcherConfig } from "../lib/config.ts";
import { startLauncher } from "../lib/launcher.ts";
import { Requester } from "../lib/requester.ts";
import type { Figure, Scenario } from "../lib/scenario.ts";
import { startServer } from "../lib/server.ts";
import { median, round } from "../lib/statistics.ts";

/** Requests at once, and the most rounds of it: with many requests one run is enough. */
const SIZES: readonly (readonly [count: number, rounds: number])[] = [
  [100, 3],
  [500, 3],
  [1_000, 5],
  [2_000, 3],
  [10_000, 1],
];

export const throughput: Scenario = {
  name: "throughput",
  about:
    "N requests at once until all are fulfilled, then all nodes given back; the floor runs in turn with it",
  async *run({ rounds }): AsyncGenerator<Figure> {
    for (const [count, most] of SIZES) yield await ofSize(count, Math.min(rounds, most));
  },
};

async function ofSize(count: number, rounds: number): Promise<Figure> {
  await using server = await startServer();
  await using launcher = await startLauncher(server.client, launcherConfig(server), 1);
  const requester = await Requester.open(server.client);
  const floors: number[] = [];
  const bursts: (Burst & { drainSeconds: number })[] = [];
  // Compilers warm up on both sides before anything counts.
  await runFloor(server.client, 500);
  await drain(server, requester, await burst(requester, launcher, 500));
  for (let round = 0; round < rounds; round++) {
    floors.push((await runFloor(server.client, count)).perSecond);
    const one = await burst(requester, launcher, count);
    bursts.push({ ...one, drainSeconds: await drain(server, requester, one) });
  }
  const of = (pick: (one: (typeof bursts)[number]) => number) => median(bursts.map(pick));
  const floor = median(floors);
  return {
    scenario: "throughput",
    requests: count,
    rounds,
    perSecond: of((one) => one.perSecond),
    floorPerSecond: round(floor),
    ratio: round(of((one) => one.perSecond) / floor, 3),
    firstMs: of((one) => one.firstMs),
    p50Ms: of((one) => one.p50Ms),
    p95Ms: of((one) => one.p95Ms),
    cpuMsPerRequest: of((one) => one.cpuMsPerRequest),
    drainSeconds: of((one) => one.drainSeconds),
    peakMemoryMib: launcher.peakMemoryMib(),
  };
}
