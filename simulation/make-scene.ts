import { FakeCloud } from "@nodeyard/driver-fake";
import { paths } from "@nodeyard/model";
import { type Clock, VirtualClock } from "@nodeyard/runtime";
import { type CallInfo, createMemoryTree, type Fault, type MemoryTree } from "@nodeyard/tree";
import { Builders, ImageCheck } from "./builder/index.ts";
import { LogCheck } from "./checks/index.ts";
import { normalCloud } from "./cloud-faults.ts";
import { CloudObserver, FOREIGN } from "./cloud-observer.ts";
import { count, noCoverage, transition } from "./coverage.ts";
import { DamagedRecords } from "./damaged-records.ts";
import type { Fault as FaultName } from "./faults.ts";
import { LeaseClient } from "./lease-client.ts";
import { Operator } from "./operator.ts";
import { Requestor } from "./requestor.ts";
import { retried } from "./retried.ts";
import type { Scene } from "./scene.ts";
import {
  budgetsOf,
  builderConfig,
  CHECKED,
  CLOUDS,
  IMAGE,
  quotaOf,
  STRANGERS,
  sharesOf,
  spendingOf,
  VARIANTS,
} from "./setting.ts";
import { streams } from "./streams.ts";
import { isFenced, Trap } from "./trap.ts";

/** Share of calls that lose their request or their reply during the faults; of events, a fifth of it. */
const LOST = 0.01;
/**
 * Calls with which a feed compares its picture with the tree: they are half of all calls, and a lost one begins a new comparison, in which
 * the next would be lost.
 */
const COMPARING: ReadonlySet<CallInfo["kind"]> = new Set(["stat", "children"]);
/** One lost call of these for this many lost calls of another kind. */
const COMPARED_PER_LOST = 4;

/** How far the tree's followers are behind its leader at most, in a spell of lag and at other times, milliseconds. */
const LAG_MS = 3_000;
const BEHIND_MS = 4;
/** A client that lost a reply reconnects within this time. */
const BEHIND_AFTER_MS = 200;

export function makeScene(
  {
    seed,
    onFault = () => {},
  }: {
    readonly seed: number;
    readonly onFault?: (at: number, fault: string) => void;
  },
  failed: (error: unknown) => void,
): Scene {
  const stream = streams(seed);
  const clock = new VirtualClock();
  const coverage = noCoverage();
  const network = stream("network");
  const lag = stream("followers");
  const followers = { lagUntil: 0 };
  const cloudClock = steady(clock);
  const cluster = createMemoryTree({
    clock,
    random: stream("tree"),
    latencyMs: [0, 6],
    followers: {
      count: 2,
      lagMs: () => lag.float() * (clock.monotonic() < followers.lagUntil ? LAG_MS : BEHIND_MS),
    },
    faults: (call) => {
      const chance = network.float() * (COMPARING.has(call.kind) ? COMPARED_PER_LOST : 1);
      return faultOf(scene, chance, network.float(), call);
    },
    losesEvent: (client) => {
      const lost =
        scene.troubled &&
        (client.startsWith("launcher-") || LOSES.test(client)) &&
        network.float() < LOST / 5;
      if (lost) {
        scene.count("lost event");
        check.missed(client, clock.now() - scene.jumped);
      }
      return lost;
    },
  });
  const connect = (name: string, sessionTimeoutMs = 600_000): MemoryTree =>
    cluster.connect({ name, sessionTimeoutMs, latencyMs: [0, 3] });
  const check = new LogCheck(
    { ...CHECKED, shares: sharesOf(seed), budget: spendingOf(seed) },
    (kind, id, from, to) => {
      count(coverage.transitions, transition(kind, from, to));
      if (kind === "node") operator.see(id, to);
    },
  );
  const operator = new Operator(
    { tree: connect("operator"), clock, random: stream("operator") },
    check,
    (fault) => scene.count(fault),
    failed,
  );
  const damaged = new DamagedRecords(
    { tree: connect("another program"), clock, random: stream("damaged records") },
    check,
    (node) => void operator.touched.add(node),
    failed,
  );
  const images = new ImageCheck((fault) => scene.count(fault));
  const effects: Scene["effects"] = [];
  const observers = new Map(
    CLOUDS.map((name) => [
      name,
      new CloudObserver(
        name,
        (effect) => void effects.push({ writes: cluster.log.length, effect }),
        (event) => images.note(cluster.log.length, event),
      ),
    ]),
  );
  const clouds = new Map(
    CLOUDS.map((name, index): [string, FakeCloud] => {
      const observer = observers.get(name)!;
      const cloud: FakeCloud = new FakeCloud({
        clock: observer.clock(cloudClock),
        random: stream(`ids of ${name}`),
        // One cloud knows a machine by its tag only if asked for it.
        knobs: {
          ...normalCloud(seed + index, quotaOf(name)),
          repeatsCreates: index === seed % CLOUDS.length,
        },
        journal: observer.journal(() => cloud),
      });
      return [name, cloud];
    }),
  );
  const builders = new Builders({
    seed,
    cluster,
    clouds,
    clock,
    check: images,
    image: IMAGE,
    config: builderConfig,
    tree: connect("image-operator"),
    random: stream("images"),
    count: (fault) => scene.count(fault),
    countCrash: (point) => scene.countCrash(point),
    failed,
  });
  let executors = 0;
  const scene: Scene = {
    seed,
    stream,
    cluster,
    clock,
    clouds,
    observers,
    effects,
    foreign: new Map(),
    trap: new Trap((at) => scene.count(at)),
    processes: [],
    check,
    zuul: new Requestor({
      tree: retried(connect("zuul"), clock, stream("retries of zuul")),
      clock,
      random: stream("zuul"),
      long: stream("long jobs"),
      executor: () =>
        retried(
          connect(`executor-${executors++}`, 10_000),
          clock,
          stream(`retries of executor ${executors}`),
        ),
      touched: (node) => operator.touched.has(node),
      onDeath: () => scene.count("executor dies"),
      other: sharesOf(seed) && "t2",
    }),
    cli: new LeaseClient(connect("cli"), clock, stream("cli"), stream("long leases"), () =>
      scene.count("lease forgotten"),
    ),
    operator,
    damaged,
    builders,
    images,
    coverage,
    slow: new Map(),
    jumped: 0,
    treeIsBackAt: 0,
    followers,
    asked: { count: 0 },
    // Whoever has a budget has it from the first node on.
    config: { ...VARIANTS[0]!, budgets: budgetsOf(seed, true) },
    troubled: true,
    count: (fault) => {
      count(coverage.faults, fault);
      onFault(clock.monotonic(), fault);
    },
    see: (sighting) => {
      count(coverage.sightings, sighting);
    },
    countCrash: (point) => {
      count(coverage.crashes, point);
      onFault(clock.monotonic(), `crash ${point}`);
    },
    onTooLarge: () => scene.count("batch too large"),
    onCheck: (effect) => void effects.push({ writes: cluster.log.length, effect }),
    onCloudError: (status) => {
      const fault = CLOUD_STATUS[status];
      if (fault !== undefined) scene.count(fault);
    },
  };
  return scene;
}

const CLOUD_STATUS: Readonly<Record<number, FaultName>> = {
  403: "cloud quota",
  500: "cloud error",
  503: "cloud capacity",
};

/** Folders that exist in every installation, and machines that are not ours. */
export async function prepare({ cluster, clock, clouds, foreign, count }: Scene): Promise<void> {
  for (const { knobs } of clouds.values()) if (knobs.repeatsCreates) count("cloud forgets tags");
  const tree = cluster.connect({ name: "setup", latencyMs: [0, 0] });
  const made = (async () => {
    for (const path of ["/nodepool", paths.requests]) await tree.create(path);
    await tree.close();
    for (const [provider, cloud] of clouds) foreign.set(provider, await strangers(cloud, provider));
  })();
  await clock.advance(5_000);
  await made;
}

async function strangers(cloud: FakeCloud, provider: string): Promise<readonly string[]> {
  const { knobs } = cloud;
  cloud.adjust({ ...knobs, errors: { create: 0, delete: 0, find: 0, list: 0 } });
  const other = { installation: FOREIGN, provider, pool: "main", nodeId: "0000000001" };
  const ids: string[] = [];
  for (const tag of [null, other].slice(0, STRANGERS)) {
    const order = {
      name: "not ours",
      tag,
      az: null,
      resources: { instances: 1 },
      networks: [],
      imageProperties: {},
    };
    ids.push((await cloud.create(order, new AbortController().signal)).id);
  }
  cloud.adjust(knobs);
  return ids;
}

function faultOf(scene: Scene, chance: number, size: number, { client, ops }: CallInfo): Fault {
  const now = scene.clock.monotonic();
  if (!/^(launcher|builder)-/.test(client)) return faultOfClient(scene, chance, client);
  if (!scene.troubled) return undefined;
  if ((scene.slow.get(client) ?? 0) > now) return { delayMs: size * 1_500 };
  if (isFenced(ops) && scene.trap.strikes("lost reply, server behind")) {
    scene.followers.lagUntil = Math.max(scene.followers.lagUntil, now + BEHIND_AFTER_MS);
    return "lose-reply";
  }
  if (chance < LOST / 2) {
    scene.count("lost reply");
    return "lose-reply";
  }
  if (chance < LOST) {
    scene.count("lost request");
    return "lose-request";
  }
  if (chance >= LOST * 3) return undefined;
  scene.count("late reply");
  return { delayMs: size * 200 };
}

/** Clients that lose calls and events as launchers do; the others only arrange the run. */
const LOSES = /^(zuul|executor|cli|operator|python)/;

/** Their servers restart at the same time as those of launchers; their sessions outlive that. */
function faultOfClient(scene: Scene, chance: number, client: string): Fault {
  const now = scene.clock.monotonic();
  if (now < scene.treeIsBackAt) return { delayMs: scene.treeIsBackAt - now };
  if (!scene.troubled || chance >= LOST || !LOSES.test(client)) return undefined;
  scene.count("lost call of a client");
  return chance < LOST / 2 ? "lose-reply" : "lose-request";
}

/** A cloud's own clock, that of another machine. */
function steady(clock: VirtualClock): Clock {
  const began = clock.now() - clock.monotonic();
  return {
    now: () => began + clock.monotonic(),
    monotonic: () => clock.monotonic(),
    setTimer: (ms, fn) => clock.setTimer(ms, fn),
  };
}
