import { inParallel } from "../floor.ts";
import { launcherConfig } from "../lib/config.ts";
import { useNodes } from "../lib/consumer.ts";
import { startLauncher } from "../lib/launcher.ts";
import { LABEL } from "../lib/records.ts";
import { nodesLeft, Requester } from "../lib/requester.ts";
import type { Figure, Scenario } from "../lib/scenario.ts";
import { startServer } from "../lib/server.ts";
import { round } from "../lib/statistics.ts";

const REQUESTS = 500;
const WORKERS = 8;
const LIMIT_MS = 120_000;

export const cycle: Scenario = {
  name: "cycle",
  about:
    "500 requests; eight executors lock the nodes, delete the request, use and return the nodes; until the last node is deleted",
  async *run(): AsyncGenerator<Figure> {
    await using server = await startServer();
    await using launcher = await startLauncher(server.client, launcherConfig(server), 1);
    const requester = await Requester.open(server.client);
    for (const counts of [false, true]) {
      const cpu = launcher.cpuMs();
      const started = performance.now();
      const ids = await requester.submit(LABEL, REQUESTS);
      await inParallel(ids, WORKERS, async (id) => {
        const [result] = await requester.fulfilled([id], LIMIT_MS);
        await useNodes(server.client, result!);
      });
      await nodesLeft(server.client, 0, LIMIT_MS);
      const seconds = (performance.now() - started) / 1_000;
      if (!counts) continue;
      yield {
        scenario: "cycle",
        requests: REQUESTS,
        seconds: round(seconds, 3),
        perSecond: round(REQUESTS / seconds),
        cpuMsPerRequest: round((launcher.cpuMs() - cpu) / REQUESTS, 3),
        peakMemoryMib: launcher.peakMemoryMib(),
      };
    }
  },
};
