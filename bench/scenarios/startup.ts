import { launcherConfig } from "../lib/config.ts";
import { startLauncher } from "../lib/launcher.ts";
import { LABEL } from "../lib/records.ts";
import { Requester } from "../lib/requester.ts";
import type { Figure, Scenario } from "../lib/scenario.ts";
import { startServer } from "../lib/server.ts";
import { median, round } from "../lib/statistics.ts";
import { fillTree, readEverything } from "../lib/tree-contents.ts";

const NODES = 5_000;
const REQUESTS = 5_000;
const READS = 3;

export const startup: Scenario = {
  name: "startup",
  about:
    "start on an empty tree and on 5,000 nodes and 5,000 requests; floor: everything read once, 1,024 in flight",
  async *run(): AsyncGenerator<Figure> {
    const empty = await start(0, 0);
    yield empty;
    const full = await start(NODES, REQUESTS);
    // The whole start counts, including that of the process; `extraMs` is the part caused by the tree's contents.
    const registered = Number(full.registeredMs);
    yield {
      ...full,
      extraMs: round(registered - Number(empty.registeredMs)),
      ratio: round(registered / Number(full.floorMs)),
    };
  },
};

async function start(nodes: number, requests: number): Promise<Figure> {
  await using server = await startServer();
  await fillTree(server.client, { nodes, requests });
  const floors: number[] = [];
  for (let read = 0; read < READS; read++) floors.push(await readEverything(server.client));
  const requester = await Requester.open(server.client);
  await using launcher = await startLauncher(server.client, launcherConfig(server), 1);
  const [first] = await requester.fulfilled(await requester.submit(LABEL, 1), 120_000);
  return {
    scenario: "startup",
    nodes,
    requests,
    registeredMs: round(launcher.startMs),
    firstRequestMs: first!.fulfilledAt - first!.createdAt,
    floorMs: round(median(floors)),
    cpuMs: round(launcher.cpuMs()),
    peakMemoryMib: launcher.peakMemoryMib(),
  };
}
