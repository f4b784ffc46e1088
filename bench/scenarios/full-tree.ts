import { Installation } from "../lib/installation.ts";
import type { Figure, Scenario } from "../lib/scenario.ts";
import { round } from "../lib/statistics.ts";

const FULL = { nodes: 5_000, requests: 5_000 };
/** Bursts per requested round: one is a quarter of a second of CPU, and a garbage collection a good part of it. */
const BURSTS = 4;

export const fullTree: Scenario = {
  name: "full-tree",
  about:
    "500 at once after 2,000, on an empty tree and beside 5,000 idle nodes and 5,000 unservable requests, in turn",
  async *run({ rounds }): AsyncGenerator<Figure> {
    await using empty = await Installation.start({ nodes: 0, requests: 0 });
    await using full = await Installation.start(FULL);
    for (let burst = 0; burst < rounds * BURSTS; burst++) {
      // The second side finds the processor as the first has left it, so they alternate.
      const order = burst % 2 === 0 ? [empty, full] : [full, empty];
      for (const one of order) await one.burst();
    }
    const [base, beside] = [empty.costs(), full.costs()];
    const against = (field: string) => round(Number(beside[field]) / Number(base[field]), 3);
    yield { scenario: "full-tree", ...base };
    yield {
      scenario: "full-tree",
      ...beside,
      cpuRatio: against("cpuMsPerRequest"),
      packetRatio: against("packetsPerRequest"),
      subOperationRatio: against("subOperationsPerRequest"),
    };
  },
};
