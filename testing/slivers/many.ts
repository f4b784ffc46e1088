/**
 * Many slivers at once, through `sliverd`, as root:
 * `node tools/run.mjs testing/slivers/many.ts [count] [container|account] [patience, s]`.
 * All must answer, each with a host key of its own, and nothing may be left at the end. The result is one line of JSON; times
 * in milliseconds, memory in KiB. `ratio` is the time to all against `count` times the floor of bench/slivers, one by one.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { createScanner } from "@nodeyard/keyscan";
import { systemClock } from "@nodeyard/runtime";
import type { SliverReport, SliverSpecInput } from "@nodeyard/sliver-protocol";
import { outliveReader } from "../outlive-reader.ts";
import { Sliverd } from "./sliverd.ts";
import { cpuOf, cpuOfSlivers, memoryAvailable, memoryOfSlivers, pssOf, traces } from "./usage.ts";

outliveReader();

const [words = "200", kind = "container", seconds = "900"] = process.argv.slice(2);
const [count, patience] = [Number(words), 1000 * Number(seconds)];
if (!(Number.isSafeInteger(count) && count > 0 && patience > 0) || !isKind(kind)) {
  console.error(`${process.argv.slice(2).join(" ")}: wanted are [count] [container|account] [patience, s]`);
  process.exit(2);
}

/** KiB that each may hold, and what the image and the file system need. */
const DISK = 24_576;
const IMAGE = 1_500_000_000;
const FLOOR_ROUNDS = 10;
/** Milliseconds without requests, to measure what idle slivers cost. */
const IDLE = 60_000;
const FLOOR = join(import.meta.dirname, "../../bench/slivers/floor.sh");

const folder = mkdtempSync(join(tmpdir(), "nodeyard-many-"));
// Roots of slivers are below it.
chmodSync(folder, 0o711);
const daemon = await Sliverd.start(
  folder,
  kind,
  { highestIndex: count + 1 },
  {
    cache: join(tmpdir(), "nodeyard-image-cache"),
    // A quarter of it is left to images.
    pool: { bytes: IMAGE + 2 * count * DISK * 1024 },
  },
);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.once(signal, () => void takeAway().finally(() => process.exit(1)));
const scanner = createScanner({ clock: systemClock });
try {
  // The first one brings the image.
  await daemon.until(() => true, 60_000);
  await daemon.deliver([specOf(0)]);
  await daemon.until(({ slivers }) => slivers.every(isRunning), patience);
  const floor = await floorOf(FLOOR_ROUNDS);
  const free = memoryAvailable();

  const began = performance.now();
  const since = () => Math.round(performance.now() - began);
  const keys = new Map<string, Promise<string>>();
  let first = 0;
  await daemon.deliver(Array.from({ length: count + 1 }, (_, at) => specOf(at)));
  await daemon.until(({ slivers }) => {
    for (const { name, phase, login } of slivers)
      if (phase === "running" && login !== undefined && !keys.has(name)) {
        first ||= since();
        keys.set(name, keyOf(login.address));
      }
    return slivers.length === count + 1 && slivers.every(isRunning);
  }, patience);
  const started = since();
  const scanned = await Promise.all(keys.values());
  const answered = since();

  // Each once more, now that all are running.
  const again = await Promise.all((await daemon.status()).slivers.map(({ login }) => keyOf(login!.address)));
  await pause(2_000);
  const [own, theirs] = [cpuOf(daemon.pid), cpuOfSlivers()];
  await pause(IDLE);
  const idle = {
    sliverd: (cpuOf(daemon.pid) - own) / (IDLE / 1000),
    slivers: (cpuOfSlivers() - theirs) / (IDLE / 1000),
  };
  const memory = [...memoryOfSlivers().values()];
  const machine = (free - memoryAvailable()) / count;

  const ending = performance.now();
  await daemon.deliver([]);
  await daemon.until(({ slivers, unlisted }) => slivers.length + unlisted.length === 0, patience);
  await until(() => traces(daemon.pool).length === 0, 60_000).catch(() => undefined);
  const left = traces(daemon.pool);
  const facts = {
    kind,
    count,
    first,
    started,
    answered,
    different: new Set(scanned).size,
    again: new Set(again).size,
    floor: Math.round(floor),
    ratio: Number((answered / (count * floor)).toFixed(2)),
    memory: {
      pss: middle(memory.map(({ pss }) => pss)),
      group: middle(memory.map(({ group }) => group)),
      machine: Math.round(machine),
      sliverd: pssOf(daemon.pid),
    },
    idleCpu: { sliverd: Number(idle.sliverd.toFixed(4)), slivers: Number(idle.slivers.toFixed(4)) },
    gone: Math.round(performance.now() - ending),
    left,
  };
  process.stdout.write(`${JSON.stringify(facts)}\n`);
  const all = count + 1;
  process.exitCode = facts.different === all && facts.again === all && left.length === 0 ? 0 : 1;
} finally {
  await takeAway();
}

/** Runs however the script ends, because slivers keep running without their daemon. */
async function takeAway(): Promise<void> {
  await daemon.deliver([]).catch(() => undefined);
  const gone = daemon.until(({ slivers, unlisted }) => slivers.length + unlisted.length === 0, patience);
  await gone.catch(console.error);
  await daemon.stop();
  execFileSync("umount", [daemon.pool]);
  rmSync(folder, { recursive: true, force: true });
}

function specOf(at: number): SliverSpecInput {
  return {
    name: `sliver${at}`,
    generation: 1,
    instantiation: "plc-instantiated",
    rspec: { disk: DISK, memoryCap: 65_536, pids: 64 },
  };
}

function isRunning({ phase }: Pick<SliverReport, "phase">): boolean {
  return phase === "running";
}

/** The one key that a sliver's own server shows. */
async function keyOf(host: string): Promise<string> {
  const { hostKeys } = await scanner.scan({ host, port: 22, keys: true, timeoutMs: 60_000 });
  return hostKeys.join();
}

/** Milliseconds that one takes which is made by a script, one after another. */
async function floorOf(rounds: number): Promise<number> {
  const images = join(daemon.pool, "images");
  const image = readdirSync(images).find((name) => /^[0-9a-f]{64}$/.test(name));
  if (image === undefined) return Number.NaN;
  const script = (verb: string) => execFileSync(FLOOR, [join(images, image), daemon.pool, folder, "1", verb]);
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const begin = performance.now();
    script("start");
    await keyOf("10.213.1.1");
    times.push(performance.now() - begin);
    script("stop");
  }
  return middle(times);
}

function middle(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

async function until(good: () => boolean, limit: number): Promise<void> {
  for (const end = performance.now() + limit; !good(); await pause(100))
    if (performance.now() > end) throw new Error("too late");
}

function isKind(name: string): name is "account" | "container" {
  return name === "account" || name === "container";
}
