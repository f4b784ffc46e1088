/**
 * From allocation to a host key read from the sliver's own sshd, with store and API, against a script that does the same
 * work without them, in turn: `node tools/run.mjs bench/slivers/main.ts [ROUNDS]`, as root. One JSON line per kind, in
 * milliseconds. Two daemons cannot share a machine, so each kind has its own floor, taken in the same rounds.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createScanner } from "@nodeyard/keyscan";
import { systemClock } from "@nodeyard/runtime";
import type { SliverSpecInput } from "@nodeyard/sliver-protocol";
import { outliveReader } from "../../testing/outlive-reader.ts";
import { Sliverd } from "../../testing/slivers/sliverd.ts";

outliveReader();

const ROUNDS = Number(process.argv[2] ?? 30);
const FLOOR = join(import.meta.dirname, "floor.sh");
/** Milliseconds. */
const PATIENCE = 120_000;
/** Ratios that a start may cost. */
const ALLOWED = { container: 1.5, account: 1.1 };

const scanner = createScanner({ clock: systemClock });
const container = await measure("container");
const account = await measure("account");
const ratios = {
  "container/floor": digits(container.start / container.floor),
  allowed: ALLOWED.container,
  // Against the floor of the same rounds, so that other load on the machine does not count.
  "account/container": digits(account.start / account.floor / (container.start / container.floor)),
  allowedAccount: ALLOWED.account,
};
console.log(JSON.stringify(ratios));
const good = ratios["container/floor"] <= ALLOWED.container && ratios["account/container"] <= ALLOWED.account;
process.exitCode = good ? 0 : 1;

/** Medians of one kind and of its floor. */
async function measure(kind: "account" | "container"): Promise<{ start: number; floor: number }> {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-bench-slivers-"));
  chmodSync(folder, 0o711);
  const cache = join(tmpdir(), "nodeyard-image-cache");
  const daemon = await Sliverd.start(folder, kind, 4, { cache, pool: { bytes: 1_500_000_000 } });
  const times: Record<"floor" | "start", number[]> = { floor: [], start: [] };
  try {
    await daemon.until(() => true, PATIENCE);
    const image = await imageOf(daemon, cache);
    const script = (verb: string) => execFileSync(FLOOR, [image, daemon.pool, folder, "1", verb]);
    for (let round = 0; round <= ROUNDS; round++) {
      const floor = await timed(async () => {
        script("start");
        await keyOf("10.213.1.1");
      });
      script("stop");
      const start = await timed(async () => {
        await daemon.deliver([specOf(round + 2)]);
        const { slivers } = await daemon.until((report) => report.slivers[0]?.phase === "running", PATIENCE);
        await keyOf(slivers[0]!.login!.address);
      });
      await empty(daemon);
      // The first run warms the caches of both.
      if (round === 0) continue;
      times.floor.push(floor);
      times.start.push(start);
    }
  } finally {
    await empty(daemon).catch(console.error);
    await daemon.stop();
    execFileSync("umount", [daemon.pool]);
    rmSync(folder, { recursive: true, force: true });
  }
  for (const [name, all] of Object.entries(times)) {
    const sorted = all.map(Math.round).sort((a, b) => a - b);
    const facts = { median: middle(sorted), least: sorted[0], most: sorted.at(-1) };
    console.log(
      JSON.stringify({ kind: name === "start" ? kind : `floor of ${kind}`, rounds: ROUNDS, ...facts }),
    );
  }
  return { start: middle(times.start), floor: middle(times.floor) };
}

/** A root for the floor: accounts need none. The daemon has made the archive, for its containers. */
async function imageOf(daemon: Sliverd, cache: string): Promise<string> {
  await daemon.deliver([specOf(1)]);
  await daemon.until((report) => report.slivers[0]?.phase === "running", PATIENCE);
  const archive = readdirSync(cache).find((name) => /^debian-bookworm-[0-9a-f]+\.tar$/.test(name));
  if (archive === undefined) throw new Error(`no archive in ${cache}`);
  const image = join(daemon.pool, "floor-image");
  execFileSync("btrfs", ["-q", "subvolume", "create", image]);
  execFileSync("tar", ["-x", "--numeric-owner", "-p", "-f", join(cache, archive), "-C", image]);
  await empty(daemon);
  return image;
}

function specOf(generation: number): SliverSpecInput {
  const rspec = { disk: 65_536, memoryCap: 131_072, pids: 64 };
  return { name: "bench", generation, instantiation: "plc-instantiated", rspec };
}

async function empty(daemon: Sliverd): Promise<void> {
  await daemon.deliver([]);
  await daemon.until(({ slivers, unlisted }) => slivers.length + unlisted.length === 0, PATIENCE);
}

async function keyOf(host: string): Promise<void> {
  await scanner.scan({ host, port: 22, keys: true, timeoutMs: 60_000 });
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
