import { runFloor } from "../floor.ts";
import type { Figure, Scenario } from "../lib/scenario.ts";
import { startServer } from "../lib/server.ts";
import { median, round } from "../lib/statistics.ts";

const REQUESTS = 1_000;

export const floor: Scenario = {
  name: "floor",
  about:
    "the fewest writes that 1,000 requests can cost, as fast as possible: throughput is judged against it",
  async *run({ rounds }): AsyncGenerator<Figure> {
    await using server = await startServer();
    const runs: number[] = [];
    await runFloor(server.client, REQUESTS);
    for (let run = 0; run < rounds; run++) runs.push((await runFloor(server.client, REQUESTS)).perSecond);
    yield {
      scenario: "floor",
      requests: REQUESTS,
      rounds,
      perSecond: round(median(runs)),
      least: round(Math.min(...runs)),
      most: round(Math.max(...runs)),
    };
  },
};
