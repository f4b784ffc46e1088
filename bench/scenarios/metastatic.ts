import type { ZooKeeper } from "@nodeyard/zookeeper";
import { launcherConfig } from "../lib/config.ts";
import { type LauncherProcess, startLauncher } from "../lib/launcher.ts";
import { LABEL } from "../lib/records.ts";
import { NODES, nodesLeft, Requester } from "../lib/requester.ts";
import type { Figure, Scenario } from "../lib/scenario.ts";
import { startServer } from "../lib/server.ts";
import { median, percentile, round } from "../lib/statistics.ts";

const SLOT_LABEL = "bench-slot";
const BACKING_NODES = 25;
const SLOTS = 8;
const IDLE = 10;
const SAMPLES = 30;
const WARM_UP = 100;
const LIMIT_MS = 120_000;

export const metastatic: Scenario = {
  name: "metastatic",
  about:
    "200 slots of 25 backing nodes at once; then one slot of an existing backing node at a time, in turn with one idle node",
  async *run(): AsyncGenerator<Figure> {
    await using server = await startServer();
    const { client } = server;
    await using launcher = await startLauncher(client, slotConfig(server.address), 2);
    const requester = await Requester.open(client);
    await nodesLeft(client, IDLE, LIMIT_MS);
    yield await crowd(client, requester, launcher);
    yield await inTurn(client, requester, launcher);
  },
};

/** The usual cloud, whose label is also a backing label; backing nodes stay during the whole run. */
function slotConfig(address: string): string {
  const config = JSON.parse(launcherConfig({ address, minReady: IDLE }));
  config.labels.push({ name: SLOT_LABEL });
  config.providers.push({
    name: "bench-slots",
    driver: "metastatic",
    pools: [
      {
        name: "main",
        labels: [
          { name: SLOT_LABEL, "backing-label": LABEL, "max-parallel-jobs": SLOTS, "grace-time": 3_600 },
        ],
      },
    ],
  });
  return JSON.stringify(config, null, 1);
}

async function crowd(client: ZooKeeper, requester: Requester, launcher: LauncherProcess): Promise<Figure> {
  const count = BACKING_NODES * SLOTS;
  const cpu = launcher.cpuMs();
  const results = await requester.fulfilled(await requester.submit(SLOT_LABEL, count), LIMIT_MS);
  const cpuMsPerRequest = round((launcher.cpuMs() - cpu) / count, 3);
  const places = await Promise.all(results.map(({ nodes }) => placeOf(client, nodes[0]!)));
  const start = Math.min(...results.map((one) => one.createdAt));
  const seconds = (Math.max(...results.map((one) => one.fulfilledAt)) - start) / 1_000;
  const figure = {
    scenario: "metastatic",
    case: "at once",
    requests: count,
    backingNodes: new Set(places.map(({ backing }) => backing)).size,
    slotsGivenTwice: count - new Set(places.map(({ backing, slot }) => `${backing}/${slot}`)).size,
    perSecond: round(count / seconds),
    cpuMsPerRequest,
  };
  await requester.giveBack(results);
  await nodesLeft(client, IDLE + figure.backingNodes, LIMIT_MS);
  return figure;
}

async function inTurn(client: ZooKeeper, requester: Requester, launcher: LauncherProcess): Promise<Figure> {
  const rest = (await client.exists(NODES))?.numChildren ?? 0;
  const slots: number[] = [];
  const idle: number[] = [];
  for (let sample = -WARM_UP; sample < SAMPLES; sample++) {
    for (const [label, into] of [
      [SLOT_LABEL, slots],
      [LABEL, idle],
    ] as const) {
      const [result] = await requester.fulfilled(await requester.submit(label, 1), LIMIT_MS);
      await requester.giveBack([result!]);
      await nodesLeft(client, rest, LIMIT_MS);
      if (sample >= 0) into.push(result!.fulfilledAt - result!.createdAt);
    }
  }
  return {
    scenario: "metastatic",
    case: "in turn",
    samples: SAMPLES,
    p50Ms: round(median(slots)),
    p95Ms: round(percentile(slots, 0.95)),
    reuseP50Ms: round(median(idle)),
    reuseP95Ms: round(percentile(idle, 0.95)),
    ratio: round(median(slots) / median(idle)),
    peakMemoryMib: launcher.peakMemoryMib(),
  };
}

async function placeOf(client: ZooKeeper, node: string): Promise<{ backing: string; slot: number }> {
  const { data } = await client.get(`${NODES}/${node}`);
  const { driver_data: place } = JSON.parse(data.toString());
  return { backing: place.backing_node, slot: place.slot };
}
