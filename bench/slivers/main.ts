import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import { isolationSchema, LxcBackEnd, SliverMachine } from "@nodeyard/sliver";
import { sampleConfig } from "@nodeyard/sliver/conformance";

/**
 * From allocation to the banner of the sliver's own sshd: both back ends against a script that does the same work, in
 * turn, as root. `node bench/slivers/main.ts [ROUNDS]`; one JSON line per kind, in milliseconds.
 */
const ROUNDS = Number(process.argv[2] ?? 30);
const FLOOR = join(import.meta.dirname, "floor.sh");

const folder = mkdtempSync(join(tmpdir(), "nodeyard-bench-slivers-"));
const cache = join(tmpdir(), "nodeyard-image-cache");
const options = isolationSchema.parse({ folder, cache, pool: { bytes: 1_500_000_000 } });
const machine = new SliverMachine({
  ...options,
  link: 1_000_000_000,
  clock: systemClock,
  onProgress: console.error,
});
const { signal } = new AbortController();
await machine.prepare(signal);
const image = await machine.images.ensure(options.defaultImage, signal);
const times: Record<string, number[]> = { floor: [], container: [], account: [] };

for (let round = 1; round <= ROUNDS; round++) {
  const script = (verb: string) => execFileSync(FLOOR, [image, machine.pool.folder, folder, "1", verb]);
  await timed("floor", async () => {
    script("start");
    await banner("10.213.1.1");
  });
  script("stop");
  for (const kind of ["container", "account"] as const) {
    const backEnd = new LxcBackEnd(kind, machine);
    const config = sampleConfig(1, round, {});
    await timed(kind, async () => {
      await backEnd.create(config, signal);
      await backEnd.configure(config, signal);
      await backEnd.start(config, signal);
    });
    await backEnd.destroy(config, signal);
  }
}
await machine.dismantle(signal);
for (const [kind, all] of Object.entries(times)) {
  const sorted = all.map(Math.round).sort((a, b) => a - b);
  console.log(
    JSON.stringify({ kind, rounds: ROUNDS, median: middle(sorted), least: sorted[0], most: sorted.at(-1) }),
  );
}
console.log(
  JSON.stringify({
    "container/floor": ratio("container", "floor"),
    allowed: 1.5,
    "account/container": ratio("account", "container"),
    allowedAccount: 1.1,
  }),
);

async function timed(kind: string, work: () => Promise<void>): Promise<void> {
  const begin = performance.now();
  await work();
  times[kind]!.push(performance.now() - begin);
}

function ratio(one: string, other: string): number {
  return Number((middle(times[one]!) / middle(times[other]!)).toFixed(2));
}

function middle(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

async function banner(host: string): Promise<void> {
  for (;;) {
    const answered = await new Promise<boolean>((resolve) => {
      const socket = connect({ host, port: 22, timeout: 100 });
      const end = (answer: boolean) => {
        socket.destroy();
        resolve(answer);
      };
      socket.once("data", () => end(true));
      socket.once("error", () => end(false));
      socket.once("end", () => end(false));
      socket.once("connect", () => socket.setTimeout(5_000));
      socket.once("timeout", () => end(false));
    });
    if (answered) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
