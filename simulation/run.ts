import { FakeCloud, INSTANT } from "@nodeyard/driver-fake";
import { paths } from "@nodeyard/model";
import { type Clock, seededRandom, VirtualClock } from "@nodeyard/runtime";
import { createMemoryTree, type MemoryCluster } from "@nodeyard/tree";
import type { LauncherConfig } from "nodeyard";
import { Broken, LogCheck } from "./checks.ts";
import { checkEnd, checkVerdicts, describe } from "./end.ts";
import { LeaseClient } from "./lease-client.ts";
import type { LauncherProcess } from "./process.ts";
import { PythonLauncher } from "./python.ts";
import { Requestor } from "./requestor.ts";
import { LIMITS, VARIANTS, WANTED } from "./setting.ts";
import { Troubles } from "./troubles.ts";

export interface SimulationOptions {
  readonly seed: number;
  /** Requests in all. */
  readonly requests?: number;
  /** Crashes, expiries, disconnects, reloads, clock jumps and graceful stops in all. */
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
  readonly leases: number;
  readonly crashes: number;
}

/** Nothing may take longer than this once the troubles are over, virtual milliseconds. */
const PATIENCE_MS = 900_000;
/** Share of calls that lose their request or their reply while there is trouble. */
const FAULTS = 0.01;

/** All that takes part in one run. */
export interface Scene {
  readonly cluster: MemoryCluster;
  readonly clock: VirtualClock;
  readonly clouds: ReadonlyMap<string, FakeCloud>;
  readonly processes: LauncherProcess[];
  readonly check: LogCheck;
  readonly zuul: Requestor;
  readonly cli: LeaseClient;
  config: LauncherConfig;
}

/** One run: throws `Broken` when a rule does not hold. */
export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  const { seed, requests = 30, troubles = 10 } = options;
  const random = seededRandom(seed);
  const faults = { share: FAULTS };
  const scene = makeScene(seed, random, faults);
  const { clock, check, cluster, zuul, cli } = scene;
  const failures: unknown[] = [];
  let checked = 0;
  const advance = async (ms: number) => {
    await clock.advance(ms);
    for (; checked < cluster.log.length; checked++) check.take(cluster.log[checked]!);
    checkVerdicts(scene);
    if (failures.length > 0) throw failures[0];
  };
  await prepare(scene);
  const python = new PythonLauncher(
    cluster.connect({ name: "python", sessionTimeoutMs: 600_000, latencyMs: [0, 3] }),
    clock,
    seededRandom(seed + 4),
  );
  if (seed % 2 === 0) python.run().catch((error) => failures.push(error));
  const trouble = new Troubles(scene, random, seed);
  trouble.start();
  trouble.start();
  const ask = () => {
    const labels = Array.from(
      { length: 1 + Math.floor(random.float() * 3) },
      () => WANTED[Math.floor(random.float() * WANTED.length)]!,
    );
    const [first] = labels as [string];
    const work = random.float() < 0.25 ? cli.live([first]) : zuul.live(mostlyOne(labels, random.float()));
    work.catch((error) => failures.push(error));
  };
  for (let asked = 0, done = 0; asked < requests || done < troubles; ) {
    await advance(random.float() * 400);
    if (asked < requests && random.float() < 0.7) {
      asked++;
      ask();
    }
    if (done < troubles && random.float() < 0.25) {
      done++;
      trouble.happen();
    }
  }
  faults.share = 0;
  // How soon a leak goes is promised for a cloud that answers.
  const { errors } = INSTANT;
  for (const cloud of scene.clouds.values()) cloud.adjust({ ...cloud.knobs, errors });
  await trouble.end();
  const began = clock.monotonic();
  while (!isQuiet(scene)) {
    if (clock.monotonic() - began > PATIENCE_MS)
      throw new Broken("every request ends", undefined, describe(scene));
    await advance(1_000);
  }
  // Two sweeps and more: what leaked is found and deleted by then.
  const lines = scene.processes.map(({ log }) => log.lines.length);
  await advance(200_000);
  checkEnd(scene, lines);
  const of = (result: string) => zuul.outcomes.filter((outcome) => outcome.result === result).length;
  return {
    seed,
    took: Math.round(clock.monotonic()),
    writes: cluster.log.length,
    used: of("used"),
    failed: of("failed"),
    cancelled: of("cancelled"),
    leases: cli.granted,
    crashes: trouble.crashes,
  };
}

/** Labels of several pools can not come from one: most nodesets are of one label, or of two that go together. */
function mostlyOne(labels: readonly string[], chance: number): readonly string[] {
  if (chance < 0.15) return labels;
  if (labels.every((label) => label === "small" || label === "large")) return labels;
  return labels.map(() => labels[0]!);
}

function makeScene(seed: number, random: ReturnType<typeof seededRandom>, faults: { share: number }): Scene {
  const clock = new VirtualClock();
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
  const connect = (name: string) => cluster.connect({ name, sessionTimeoutMs: 600_000, latencyMs: [0, 3] });
  const clouds = new Map(
    ["cloud", "east"].map((name, index) => [
      name,
      new FakeCloud({ clock: steady(clock), random: seededRandom(seed + 20 + index), knobs: knobs(seed) }),
    ]),
  );
  return {
    cluster,
    clock,
    clouds,
    processes: [],
    check: new LogCheck(LIMITS),
    zuul: new Requestor(connect("zuul"), clock, seededRandom(seed + 3)),
    cli: new LeaseClient(connect("cli"), clock, seededRandom(seed + 5)),
    config: VARIANTS[0]!,
  };
}

async function prepare({ cluster, clock }: Scene): Promise<void> {
  const tree = cluster.connect({ name: "setup", latencyMs: [0, 0] });
  const made = (async () => {
    for (const path of ["/nodepool", paths.requests]) await tree.create(path);
    await tree.close();
  })();
  await clock.advance(1_000);
  await made;
}

function isQuiet({ check, zuul, cli, cluster }: Scene): boolean {
  const going = [...check.nodes.values()].some(
    ({ data }) => data.state !== "ready" || (data.allocated_to ?? null) !== null,
  );
  const leases = cluster.znodes.children("/nodeyard/leases")?.length ?? 0;
  return zuul.open.size === 0 && cli.open === 0 && leases === 0 && check.requests.size === 0 && !going;
}

/** A cloud has a clock of its own: a launcher's that jumps does not hide machines. */
function steady(clock: VirtualClock): Clock {
  const began = clock.now() - clock.monotonic();
  return {
    now: () => began + clock.monotonic(),
    monotonic: () => clock.monotonic(),
    setTimer: (ms, fn) => clock.setTimer(ms, fn),
  };
}

function knobs(seed: number) {
  const latency = {
    create: { minMs: 10, maxMs: 300 },
    boot: { minMs: 0, maxMs: 2_000 },
    delete: { minMs: 5, maxMs: 500 },
    read: { minMs: 1, maxMs: 100 },
  };
  const errors = { create: 0.1, delete: 0.1, find: 0.05, list: 0.05 };
  return { ...INSTANT, seed, quota: {}, latency, errors, consistencyDelayMs: 500 };
}
