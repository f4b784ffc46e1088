import { burst, drain } from "../lib/burst.ts";
import { launcherConfig } from "../lib/config.ts";
import { startLauncher } from "../lib/launcher.ts";
import { Requester } from "../lib/requester.ts";
import type { Figure, Scenario } from "../lib/scenario.ts";
import { startServer } from "../lib/server.ts";
import { median, round } from "../lib/statistics.ts";
import { startTap } from "../lib/tap.ts";
import { fillTree } from "../lib/tree-contents.ts";

const WARM_UP = 2_000;
const COUNT = 500;
const NODES = 5_000;
const REQUESTS = 5_000;

export const fullTree: Scenario = {
  name: "full-tree",
  about:
    "500 at once after 2,000, on an empty tree and beside 5,000 idle nodes and 5,000 unservable requests",
  async *run({ rounds }): AsyncGenerator<Figure> {
    const empty = await on(0, 0, rounds);
    yield empty;
    const full = await on(NODES, REQUESTS, rounds);
    const against = (field: string) => round(Number(full[field]) / Number(empty[field]), 3);
    yield {
      ...full,
      cpuRatio: against("cpuMsPerRequest"),
      packetRatio: against("packetsPerRequest"),
      subOperationRatio: against("subOperationsPerRequest"),
    };
  },
};

async function on(nodes: number, requests: number, rounds: number): Promise<Figure> {
  await using server = await startServer();
  await fillTree(server.client, nodes, requests);
  await using tap = await startTap(server.address);
  await using launcher = await startLauncher(server.client, launcherConfig(tap), 1);
  const requester = await Requester.open(server.client);
  await drain(server, requester, await burst(requester, launcher, WARM_UP), nodes);
  const cpu: number[] = [];
  const packets: number[] = [];
  const subOperations: number[] = [];
  for (let round = 0; round < rounds; round++) {
    tap.reset();
    const one = await burst(requester, launcher, COUNT);
    cpu.push(one.cpuMsPerRequest);
    packets.push(tap.counts().packets / COUNT);
    subOperations.push(tap.counts().subOperations / COUNT);
    await drain(server, requester, one, nodes);
  }
  return {
    scenario: "full-tree",
    nodes,
    requests,
    cpuMsPerRequest: median(cpu),
    packetsPerRequest: round(median(packets)),
    subOperationsPerRequest: round(median(subOperations)),
    peakMemoryMib: launcher.peakMemoryMib(),
  };
}
