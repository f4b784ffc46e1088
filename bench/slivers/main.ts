/**
 * From allocation to a host key read from the sliver's own sshd, with store and API, against a script that does the same
 * work without them, in turn: `node tools/run.mjs bench/slivers/main.ts [ROUNDS]`, as root. One JSON line per kind, in
 * milliseconds. Two daemons cannot share a machine, so each kind has its own floor, taken in the same rounds. In the rounds of containers
 * there are also slivers of a snapshot, the same where one is kept ready, systemd-nspawn and podman; for slivers that are started, also where
 * their time went. At the end some are asked for at once, LXC alone and by `sliverd`, in turn. One more sliver runs all the time, as on
 * a machine in use: what all slivers share (rules, queues, lxcfs) exists, and the others share nothing that they would have to make.
 */
import { execFile, execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { createScanner } from "@nodeyard/keyscan";
import { systemClock } from "@nodeyard/runtime";
import type { NodeReport, SliverReport, SliverSpecInput } from "@nodeyard/sliver-protocol";
import { outliveReader } from "../../testing/outlive-reader.ts";
import { Sliverd } from "../../testing/slivers/sliverd.ts";
import { turn } from "../../testing/slivers/turn.ts";
import { type Other, others } from "./others.ts";
import { monotonic, noting, phasesOf } from "./phases.ts";

outliveReader();

const ROUNDS = Number(process.argv[2] ?? 30);
const FLOOR = join(import.meta.dirname, "floor.sh");
/** Milliseconds. */
const PATIENCE = 120_000;
const LOOK = 5;
const FLOOR_NAME = "LXC alone";
const WARM = "container of a snapshot";
const READY = "container of a snapshot, kept ready";
/** Ratios that a start may cost. */
const ALLOWED = { container: 3, account: 1.1, ready: 1, burst: 1.5 };
/** Slivers that are asked for at once, and how often. */
const BURST = 20;
const BURSTS = 3;

const BURST_NAME = `${BURST} containers at once`;
const BURST_FLOOR = `${BURST} at once, ${FLOOR_NAME}`;

const RESIDENT = specOf("resident", 1);

const giveBack = await turn(undefined, 1_200_000);
const scanner = createScanner({ clock: systemClock });
const { [FLOOR_NAME]: floor = 0, ...container } = await measure("container");
const { [FLOOR_NAME]: accountFloor = 0, account = 0 } = await measure("account");
giveBack();
const { container: image = 0, [READY]: ready = 0, [WARM]: warm = 0, ...rest } = container;
const ratios = {
  "container/floor": [image / floor, ALLOWED.container],
  // Against the floor of the same rounds, so that other load on the machine does not count.
  "account/container": [account / accountFloor / (image / floor), ALLOWED.account],
  "ready/fastest of the others": [ready / Math.min(floor, ...Object.values(rest)), ALLOWED.ready],
  "snapshot/image": [warm / image, Number.POSITIVE_INFINITY],
  "burst/floor": [container[BURST_NAME]! / container[BURST_FLOOR]!, ALLOWED.burst],
};
const facts = Object.entries(ratios).map(([name, [is, most]]) => [name, { is: digits(is!), most }]);
console.log(JSON.stringify(Object.fromEntries(facts)));
process.exitCode = Object.values(ratios).every(([is, most]) => is! <= most!) ? 0 : 1;

/** Median of each, in milliseconds. */
type Medians = Readonly<Record<string, number>>;

/** One kind of start: what is timed, and what ends it. */
interface Contestant {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Medians of one kind, of its floor and, for containers, of others. */
async function measure(kind: "account" | "container"): Promise<Medians> {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-bench-slivers-"));
  chmodSync(folder, 0o711);
  const cache = join(tmpdir(), "nodeyard-image-cache");
  const machine = { highestIndex: BURST + 4, spares: kind === "container" ? 1 : 0 };
  const notes = join(folder, "programs");
  const isolation = { cache, pool: { bytes: 2_500_000_000 } };
  const daemon = await Sliverd.start(folder, kind, machine, isolation, noting(notes));
  const times = new Map<string, number[]>();
  const phases = new Map<string, Record<string, number>[]>();
  let rivals: readonly Other[] = [];
  try {
    await daemon.until(() => true, PATIENCE);
    const image = await imageOf(daemon, cache);
    const script = (verb: string) => execFileSync(FLOOR, [image, daemon.pool, folder, "1", verb]);
    const each = async (verb: string, then?: (at: number) => Promise<void>) => {
      const all = Array.from({ length: BURST }, (_, at) => at + 1);
      const one = (at: number) => promisify(execFile)(FLOOR, [image, daemon.pool, folder, String(at), verb]);
      await Promise.all(all.map((at) => one(at).then(() => then?.(at))));
    };
    if (kind === "container") rivals = others(image, folder);
    let generation = 1;
    const sliver = (name: string, more: Partial<SliverSpecInput> = {}): Contestant => ({
      name,
      start: async () => {
        const asked = monotonic();
        await daemon.deliver([RESIDENT, { ...specOf("bench", ++generation), ...more }]);
        const { address } = (await running(daemon, "bench")).login!;
        const found = phasesOf(notes, asked, monotonic());
        if (found !== undefined) phases.set(name, [...(phases.get(name) ?? []), found]);
        await keyOf(address);
      },
      stop: () => end(daemon, [RESIDENT]),
    });
    const floor: Contestant = {
      name: FLOOR_NAME,
      start: async () => {
        script("start");
        await keyOf("10.213.1.1");
      },
      stop: async () => void script("stop"),
    };
    const snapshot = async () => {
      await settle();
      await daemon.deliver([RESIDENT, specOf("bench", ++generation)]);
      await running(daemon, "bench");
      await daemon.snapshot("bench", "warm");
      await end(daemon, [RESIDENT]);
    };
    if (kind === "container") await snapshot();
    // The spare is of the kind that was asked for last, so it serves the last of these only.
    const slivers = [sliver(kind)];
    if (kind === "container") for (const name of [WARM, READY]) slivers.push(sliver(name, { image: "warm" }));
    const all = [floor, ...slivers, ...rivals.map(contestant)];
    const burst: Contestant = {
      name: BURST_NAME,
      start: async () => {
        const some = Array.from({ length: BURST }, (_, at) => specOf(`burst${at}`, ++generation));
        await daemon.deliver([RESIDENT, ...some]);
        await Promise.all(some.map(async ({ name }) => keyOf((await running(daemon, name)).login!.address)));
      },
      stop: () => end(daemon, [RESIDENT]),
    };
    const floorBurst: Contestant = {
      name: BURST_FLOOR,
      start: () => each("start", (at) => keyOf(`10.213.1.${at}`)),
      stop: () => each("stop"),
    };
    const bursts = kind === "container" ? [floorBurst, burst] : [];
    for (let round = 0; round <= ROUNDS; round++)
      for (const { name, start, stop } of round < ROUNDS - BURSTS ? all : [...all, ...bursts]) {
        await settle();
        const begin = performance.now();
        await start();
        const ms = performance.now() - begin;
        await stop();
        // The first run warms the caches of all.
        if (round > 0) times.set(name, [...(times.get(name) ?? []), ms]);
      }
  } finally {
    for (const { stop } of rivals) await stop().catch(() => undefined);
    await daemon.dismantle();
    rmSync(folder, { recursive: true, force: true });
  }
  for (const [name, all] of times) {
    const sorted = all.map(Math.round).sort((a, b) => a - b);
    const facts = { median: middle(sorted), least: sorted[0], most: sorted.at(-1) };
    console.log(JSON.stringify({ of: kind, start: name, rounds: sorted.length, ...facts }));
    const parts = phases.get(name)?.slice(1) ?? [];
    const medians = Object.keys(parts[0] ?? {}).map((part) => [
      part,
      Math.round(middle(parts.map((one) => one[part]!))),
    ]);
    if (parts.length > 0)
      console.log(JSON.stringify({ of: kind, phases: name, ...Object.fromEntries(medians) }));
  }
  return Object.fromEntries([...times].map(([name, all]) => [name, middle(all)]));
}

function contestant({ name, port, start, stop }: Other): Contestant {
  return {
    name,
    start: async () => {
      start();
      await keyOf("127.0.0.1", port);
    },
    stop,
  };
}

/** A root for the floor: accounts need none. The daemon has made the archive, for its containers. */
async function imageOf(daemon: Sliverd, cache: string): Promise<string> {
  await daemon.deliver([RESIDENT]);
  await running(daemon, RESIDENT.name);
  const archive = readdirSync(cache).find((name) => /^debian-bookworm-[0-9a-f]+\.tar$/.test(name));
  if (archive === undefined) throw new Error(`no archive in ${cache}`);
  const image = join(daemon.pool, "floor-image");
  execFileSync("btrfs", ["-q", "subvolume", "create", image]);
  execFileSync("tar", ["-x", "--numeric-owner", "-p", "-f", join(cache, archive), "-C", image]);
  return image;
}

function specOf(name: string, generation: number): SliverSpecInput {
  const rspec = { disk: 65_536, memoryCap: 131_072, pids: 64 };
  return { name, generation, instantiation: "plc-instantiated", rspec };
}

async function running(daemon: Sliverd, name: string): Promise<SliverReport> {
  const find = ({ slivers }: NodeReport) =>
    slivers.find((one) => one.name === name && one.phase === "running");
  return find(await daemon.until((report) => find(report) !== undefined, PATIENCE))!;
}

/** Ends all slivers but those. */
async function end(daemon: Sliverd, staying: readonly SliverSpecInput[]): Promise<void> {
  await settle();
  await daemon.deliver(staying);
  await daemon.until(
    ({ slivers, unlisted, spares = [] }) =>
      slivers.length + unlisted.length === staying.length && spares.every(({ phase }) => phase === "running"),
    PATIENCE,
  );
}

/** Programs that were awaited without this process reading anything: meanwhile the daemon may have closed an idle connection. */
function settle(): Promise<void> {
  return pause(10 * LOOK);
}

/** Looks every few milliseconds whether something listens: the scanner's back-off would count against what is there sooner. */
async function keyOf(host: string, port = 22): Promise<void> {
  const end = performance.now() + PATIENCE;
  while (performance.now() < end && !(await listens(host, port))) await pause(LOOK);
  await scanner.scan({ host, port, keys: true, timeoutMs: 60_000 });
}

function listens(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 20 * LOOK });
    const end = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => end(true));
    socket.once("error", () => end(false)).once("timeout", () => end(false));
  });
}

function digits(value: number): number {
  return Number(value.toFixed(2));
}

function middle(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
