import { FakeCloud, fakeConfig, INSTANT } from "@nodeyard/driver-fake";
import { paths } from "@nodeyard/model";
import { type Random, seededRandom, VirtualClock } from "@nodeyard/runtime";
import { createMemoryTree, type MemoryCluster } from "@nodeyard/tree";
import type { LauncherConfig } from "nodeyard";
import { Broken, LogCheck } from "./checks.ts";
import { LauncherProcess } from "./process.ts";
import { Requestor } from "./requestor.ts";

export interface SimulationOptions {
  readonly seed: number;
  /** Requests in all. */
  readonly requests?: number;
  /** Crashes, expiries and disconnects in all. */
  readonly troubles?: number;
}

export interface SimulationResult {
  readonly seed: number;
  /** Virtual milliseconds. */
  readonly took: number;
  readonly writes: number;
  readonly used: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly crashes: number;
}

const LIMIT = 6;
const LABELS = ["small", "large"];
/** Nothing may take longer than this once the troubles are over, virtual milliseconds. */
const PATIENCE_MS = 900_000;

/** One run: throws `Broken` when a rule does not hold. */
export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  const { seed, requests = 30, troubles = 8 } = options;
  const random = seededRandom(seed);
  const clock = new VirtualClock();
  const faults = { share: 0.01 };
  const cluster = createMemoryTree({
    clock,
    random: seededRandom(seed + 1),
    latencyMs: [0, 6],
    faults: ({ client }) => {
      if (!client.startsWith("launcher")) return undefined;
      const chance = random.float();
      if (chance < faults.share / 2) return "lose-reply";
      if (chance < faults.share) return "lose-request";
      return chance < faults.share * 3 ? { delayMs: random.float() * 200 } : undefined;
    },
  });
  const cloud = new FakeCloud({ clock, random: seededRandom(seed + 2), knobs: knobs(seed) });
  const surroundings = { cluster, cloud, clock, config: configOf() };
  const processes: LauncherProcess[] = [];
  const start = () =>
    processes.push(
      new LauncherProcess(`launcher-${processes.length}`, seed * 1_000 + processes.length, surroundings),
    );
  const check = new LogCheck(new Map([["cloud/main", LIMIT]]));
  let checked = 0;
  const checkLog = () => {
    for (; checked < cluster.log.length; checked++) check.take(cluster.log[checked]!);
  };

  await prepare(cluster, clock);
  start();
  start();
  const zuul = new Requestor(
    cluster.connect({ name: "zuul", sessionTimeoutMs: 600_000, latencyMs: [0, 3] }),
    clock,
    seededRandom(seed + 3),
  );
  const failures: unknown[] = [];
  const ask = () => {
    const labels = Array.from(
      { length: 1 + Math.floor(random.float() * 3) },
      () => LABELS[Math.floor(random.float() * LABELS.length)]!,
    );
    zuul.live(labels).catch((error) => failures.push(error));
  };
  const advance = async (ms: number) => {
    await clock.advance(ms);
    checkLog();
    if (failures.length > 0) throw failures[0];
  };

  let [asked, done, crashes] = [0, 0, 0];
  while (asked < requests || done < troubles) {
    await advance(random.float() * 400);
    if (asked < requests && random.float() < 0.7) {
      asked++;
      ask();
    }
    if (done < troubles && random.float() < 0.25) {
      done++;
      if (trouble(random, processes) === "crash") {
        crashes++;
        start();
      }
    }
  }
  faults.share = 0;
  const began = clock.monotonic();
  while (!isQuiet(cluster, zuul, check)) {
    if (clock.monotonic() - began > PATIENCE_MS)
      throw new Broken("every request ends", undefined, describe(cluster, zuul, check, processes));
    await advance(1_000);
  }
  // Two sweeps and more: what leaked is found and deleted by then.
  await advance(200_000);
  finalChecks(cloud, check);
  const of = (result: string) => zuul.outcomes.filter((outcome) => outcome.result === result).length;
  return {
    seed,
    took: Math.round(clock.monotonic()),
    writes: cluster.log.length,
    used: of("used"),
    failed: of("failed"),
    cancelled: of("cancelled"),
    crashes,
  };
}

function trouble(random: Random, processes: readonly LauncherProcess[]): string {
  const alive = processes.filter((each) => !each.dead);
  const victim = alive[Math.floor(random.float() * alive.length)]!;
  const kind = random.float();
  if (kind < 0.4) {
    victim.crash();
    return "crash";
  }
  if (kind < 0.7) victim.tree.expire();
  else victim.tree.disconnect();
  return "other";
}

async function prepare(cluster: MemoryCluster, clock: VirtualClock): Promise<void> {
  const tree = cluster.connect({ name: "setup", latencyMs: [0, 0] });
  const made = (async () => {
    for (const path of ["/nodepool", paths.requests]) await tree.create(path);
    await tree.close();
  })();
  await clock.advance(1_000);
  await made;
}

function isQuiet(cluster: MemoryCluster, zuul: Requestor, check: LogCheck): boolean {
  void cluster;
  const going = [...check.nodes.values()].some(
    ({ data }) => data.state !== "ready" || data.allocated_to !== null,
  );
  return zuul.open.size === 0 && check.requests.size === 0 && !going;
}

function finalChecks(cloud: FakeCloud, check: LogCheck): void {
  const machines = cloud.inspect();
  const tags = machines.map((machine) => machine.tag?.nodeId ?? "none");
  if (new Set(tags).size !== tags.length)
    throw new Broken("one tag has one machine", undefined, tags.join(", "));
  for (const tag of tags)
    if (!check.nodes.has(tag))
      throw new Broken("nothing outlives its record", undefined, `machine of node ${tag}`);
  for (const [id] of check.nodes)
    if (!tags.includes(id)) throw new Broken("a ready node has a machine", undefined, id);
}

function describe(
  cluster: MemoryCluster,
  zuul: Requestor,
  check: LogCheck,
  processes: readonly LauncherProcess[],
): string {
  const all = new Set([...zuul.open, ...check.requests.keys()]);
  const open = [...all].map((id) => `${id} ${JSON.stringify(check.requests.get(id)?.data)}`);
  const nodes = [...check.nodes].map(([id, { data }]) => `${id} ${data.state} ${data.allocated_to}`);
  const verdicts = processes
    .filter((each) => !each.dead)
    .map((each) => `${each.name}: ${[...all].map((id) => JSON.stringify(each.launcher?.verdict(id)))}`);
  const logs = processes.flatMap((each) =>
    each.log.lines
      .slice(-8)
      .map((line) => `${each.name} ${line.level} ${line.text} ${JSON.stringify(line.facts)}`),
  );
  const locks = [...all].map(
    (id) => `lock ${id}: ${[...(cluster.znodes.children(paths.requestLock(id)) ?? [])]}`,
  );
  const pools = [...(cluster.znodes.children("/nodepool/components/pool") ?? [])];
  const work = processes
    .filter((each) => !each.dead)
    .map((each) => `${each.name} ${JSON.stringify(each.launcher?.inspect())} ${each.tree.session().state}`);
  return ["", `pools ${pools}`, ...work, ...locks, ...open, ...nodes, ...verdicts, ...logs].join("\n  ");
}

function knobs(seed: number) {
  const latency = {
    create: { minMs: 10, maxMs: 300 },
    boot: { minMs: 0, maxMs: 2_000 },
    delete: { minMs: 5, maxMs: 500 },
    read: { minMs: 1, maxMs: 100 },
  };
  return {
    ...INSTANT,
    seed,
    quota: {},
    latency,
    errors: { create: 0.1, delete: 0.1, find: 0.05, list: 0.05 },
    consistencyDelayMs: 500,
  };
}

function configOf(): LauncherConfig {
  const raw = {
    name: "cloud",
    driver: "fake",
    "launch-retries": 3,
    "cloud-images": [{ name: "image" }],
    pools: [
      {
        name: "main",
        "max-servers": LIMIT,
        labels: LABELS.map((name) => ({ name, "cloud-image": "image", "flavor-name": "Fake Flavor" })),
      },
    ],
  };
  const provider = fakeConfig.load(raw, { labels: new Set(LABELS), diskimages: new Map(), report: () => {} });
  if (provider === undefined) throw new Error("the simulation's own configuration does not load");
  const labels = new Map([
    ["small", { name: "small", minReady: 1, maxReadyAgeMs: Number.POSITIVE_INFINITY }],
  ]);
  return { providers: [provider], labels, tenantLimits: new Map(), maxHoldAgeMs: Number.POSITIVE_INFINITY };
}
