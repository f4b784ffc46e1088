/**
 * From allocation to a host key read from the sliver's own sshd, with store and API, against a script that does the same
 * work without them, in turn: `node tools/run.mjs bench/slivers/main.ts [ROUNDS]`, as root. One JSON line per kind, in
 * milliseconds. Two daemons cannot share a machine, so each kind has its own floor, taken in the same rounds. In the rounds of containers
 * there are also slivers of a snapshot ("warm"), systemd-nspawn and podman. One more sliver runs all the time, as on a machine in use: what
 * all slivers share (rules, queues, lxcfs) exists, and the others share nothing that they would have to make.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { createScanner } from "@nodeyard/keyscan";
import { systemClock } from "@nodeyard/runtime";
import type { NodeReport, SliverReport, SliverSpecInput } from "@nodeyard/sliver-protocol";
import { outliveReader } from "../../testing/outlive-reader.ts";
import { Sliverd } from "../../testing/slivers/sliverd.ts";
import { type Other, others } from "./others.ts";

outliveReader();

const ROUNDS = Number(process.argv[2] ?? 30);
const FLOOR = join(import.meta.dirname, "floor.sh");
/** Milliseconds. */
const PATIENCE = 120_000;
const LOOK = 5;
/** Ratios that a start may cost. */
const WARM = "warm";
const ALLOWED = { container: 1.5, account: 1.1 };

const RESIDENT = specOf("resident", 1);

const scanner = createScanner({ clock: systemClock });
const container = await measure("container");
const account = await measure("account");
const ratios = {
  "container/floor": digits(container.start / container.floor),
  allowed: ALLOWED.container,
  // Against the floor of the same rounds, so that other load on the machine does not count.
  "account/container": digits(account.start / account.floor / (container.start / container.floor)),
  allowedAccount: ALLOWED.account,
  "warm/container": digits(container.warm / container.start),
  "warm/fastest of nspawn and podman": digits(container.warm / container.fastest),
};
console.log(JSON.stringify(ratios));
const good = ratios["container/floor"] <= ALLOWED.container && ratios["account/container"] <= ALLOWED.account;
process.exitCode = good ? 0 : 1;

interface Medians {
  readonly start: number;
  readonly floor: number;
  /** Of containers only, as is `fastest`: of what is not ours. */
  readonly warm: number;
  readonly fastest: number;
}

/** Medians of one kind and of its floor. */
async function measure(kind: "account" | "container"): Promise<Medians> {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-bench-slivers-"));
  chmodSync(folder, 0o711);
  const cache = join(tmpdir(), "nodeyard-image-cache");
  const daemon = await Sliverd.start(folder, kind, 4, { cache, pool: { bytes: 1_500_000_000 } });
  const times: Record<string, number[]> = {};
  const note = (name: string, ms: number) => {
    times[name] = [...(times[name] ?? []), ms];
  };
  let rivals: readonly Other[] = [];
  try {
    await daemon.until(() => true, PATIENCE);
    const image = await imageOf(daemon, cache);
    const script = (verb: string) => execFileSync(FLOOR, [image, daemon.pool, folder, "1", verb]);
    if (kind === "container") rivals = others(image, folder);
    await settle();
    let generation = 1;
    const sliver = (more: Partial<SliverSpecInput>) =>
      timed(async () => {
        await daemon.deliver([RESIDENT, { ...specOf("bench", ++generation), ...more }]);
        await keyOf((await running(daemon, "bench")).login!.address);
      });
    for (let round = 0; round <= ROUNDS; round++) {
      const floor = await timed(async () => {
        script("start");
        await keyOf("10.213.1.1");
      });
      script("stop");
      const start = await sliver({});
      if (kind === "container" && round === 0) await daemon.snapshot("bench", WARM);
      await end(daemon, [RESIDENT]);
      const warm = kind === "container" ? await sliver({ image: WARM }) : undefined;
      if (warm !== undefined) await end(daemon, [RESIDENT]);
      const rest: [string, number][] = [];
      for (const { name, port, start: begin, stop } of rivals) {
        const ms = await timed(async () => {
          begin();
          await keyOf("127.0.0.1", port);
        });
        rest.push([name, ms]);
        await stop();
      }
      await settle();
      // The first run warms the caches of all.
      if (round === 0) continue;
      note("floor", floor);
      note("start", start);
      if (warm !== undefined) note("warm", warm);
      for (const [name, ms] of rest) note(name, ms);
    }
  } finally {
    for (const { stop } of rivals) await stop().catch(() => undefined);
    await end(daemon, []).catch(console.error);
    await daemon.stop();
    execFileSync("umount", [daemon.pool]);
    rmSync(folder, { recursive: true, force: true });
  }
  const titles: Readonly<Record<string, string>> = {
    start: kind,
    floor: `floor of ${kind}: LXC alone`,
    warm: "container of a snapshot",
  };
  for (const [name, all] of Object.entries(times)) {
    const sorted = all.map(Math.round).sort((a, b) => a - b);
    const facts = { median: middle(sorted), least: sorted[0], most: sorted.at(-1) };
    console.log(JSON.stringify({ kind: titles[name] ?? name, rounds: ROUNDS, ...facts }));
  }
  const { start = [], floor = [], warm = [], ...rest } = times;
  const fastest = Math.min(...Object.values(rest).map(middle));
  return { start: middle(start), floor: middle(floor), warm: middle(warm), fastest };
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
    ({ slivers, unlisted }) => slivers.length + unlisted.length === staying.length,
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

async function timed(work: () => Promise<void>): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}

function digits(value: number): number {
  return Number(value.toFixed(2));
}

function middle(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
