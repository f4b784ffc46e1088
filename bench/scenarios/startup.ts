import { burst, drain } from "../lib/burst.ts";
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
/** Of a launcher that has just started, one after the other. */
const BURSTS = 6;
const BURST = 200;

export const startup: Scenario = {
  name: "startup",
  about:
    "start on an empty tree and on 5,000 nodes and 5,000 requests; floor: everything read once, 1,024 in flight; the first bursts of a launcher",
  async *run({ rounds }): AsyncGenerator<Figure> {
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
    yield await warming(rounds);
  },
};

/** CPU of a request in each of the first bursts of a launcher: medians of as many launchers. */
async function warming(rounds: number): Promise<Figure> {
  const all: number[][] = [];
  for (let round = 0; round < rounds; round++) {
    await using server = await startServer();
    await using launcher = await startLauncher(server.client, launcherConfig(server), 1);
    const requester = await Requester.open(server.client);
    const used: number[] = [];
    for (let count = 0; count < BURSTS; count++) {
      const one = await burst(requester, launcher, BURST);
      used.push(one.cpuMsPerRequest);
      await drain(server, requester, one);
    }
    all.push(used);
  }
  const cpuMsOfBursts = Array.from({ length: BURSTS }, (_, index) => median(all.map((used) => used[index]!)));
  return {
    scenario: "startup",
    bursts: BURSTS,
    requests: BURST,
    rounds,
    firstCpuMsPerRequest: round(cpuMsOfBursts[0]!, 3),
    lastCpuMsPerRequest: round(cpuMsOfBursts.at(-1)!, 3),
    ratio: round(cpuMsOfBursts[0]! / cpuMsOfBursts.at(-1)!),
  };
}

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
