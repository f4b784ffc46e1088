import { launcherConfig } from "../lib/config.ts";
import { startLauncher } from "../lib/launcher.ts";
import { LABEL } from "../lib/records.ts";
import { nodesLeft, Requester } from "../lib/requester.ts";
import type { Figure, Scenario } from "../lib/scenario.ts";
import { type Server, startServer } from "../lib/server.ts";
import { median, percentile, round } from "../lib/statistics.ts";

const SAMPLES = 30;
/** During the first requests the compilers of the JVM and of Node are still at work: they are reported, not judged. */
const WARM_UP = 300;
const COLD = 20;
const ROUND_TRIPS = 7;

export const latency: Scenario = {
  name: "latency",
  about:
    "idle system, one request of one node at a time; floor: seven raw round trips, in turn with the samples",
  async *run(): AsyncGenerator<Figure> {
    await using server = await startServer();
    await using launcher = await startLauncher(server.client, launcherConfig(server), 1);
    const requester = await Requester.open(server.client);
    await server.client.create("/latency-floor");
    const latencies: number[] = [];
    const floors: number[] = [];
    const cold: number[] = [];
    const coldFloors: number[] = [];
    let cpu = 0;
    for (let sample = -WARM_UP; sample < SAMPLES; sample++) {
      if (sample === 0) cpu = launcher.cpuMs();
      const took = await oneRequest(server, requester);
      const floor = await rawRoundTrips(server);
      if (sample < COLD - WARM_UP) {
        cold.push(took);
        coldFloors.push(floor);
      }
      if (sample < 0) continue;
      latencies.push(took);
      floors.push(floor);
    }
    yield {
      scenario: "latency",
      samples: SAMPLES,
      p50Ms: round(median(latencies)),
      p95Ms: round(percentile(latencies, 0.95)),
      floorP50Ms: round(median(floors)),
      ratio: round(median(latencies) / median(floors)),
      coldFirstMs: round(cold[0] ?? Number.NaN),
      coldP50Ms: round(median(cold)),
      coldFloorP50Ms: round(median(coldFloors)),
      coldRatio: round(median(cold) / median(coldFloors)),
      cpuMsPerRequest: round((launcher.cpuMs() - cpu) / SAMPLES),
      peakMemoryMib: launcher.peakMemoryMib(),
    };
  },
};

/** By the tree's own times: from the request's creation to the write of `fulfilled`. */
async function oneRequest(server: Server, requester: Requester): Promise<number> {
  const ids = await requester.submit(LABEL, 1);
  const [result] = await requester.fulfilled(ids, 30_000);
  await requester.giveBack([result!]);
  await nodesLeft(server.client, 0, 30_000);
  return result!.fulfilledAt - result!.createdAt;
}

async function rawRoundTrips({ client }: Server): Promise<number> {
  const started = performance.now();
  const data = Buffer.alloc(600);
  for (let trip = 0; trip < ROUND_TRIPS; trip++)
    await client.multi([
      { op: "check", path: "/latency-floor" },
      { op: "set", path: "/latency-floor", data },
    ]);
  return performance.now() - started;
}
