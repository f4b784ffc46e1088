import { readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import type { Rspec } from "@nodeyard/sliver-protocol";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { Cgroups, PARENT } from "../../src/isolation/cgroups/edge/cgroups.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { bringUp, configsOf, inSliver } from "./machine/slivers.ts";

const MIB = 1_048_576;
const WRITTEN = 16;
/** Bytes a second. */
const LIMIT = 2 * MIB;
/** Reads, and how many of them a second. */
const READS = 100;
const OPERATIONS = 25;

describe.skipIf(whyNot() !== undefined)("what a sliver writes to its disk", () => {
  let real: RealMachine;
  beforeAll(async () => {
    real = await realMachine();
  });
  afterEach(() => real.clear());
  afterAll(() => real?.stop());

  test("cgroup v2 limits it also when it is buffered; v1 does not, and that is said", async () => {
    const { signal } = new AbortController();
    const backEnd = real.backEnd("account");
    const { layout } = await Cgroups.detect(systemClock);
    const io = layout.controllers.get("io")!;
    const [config] = configsOf(real.key, { 1: { ioWrite: LIMIT } });
    await bringUp(backEnd, [config!]);
    const { unenforced } = await backEnd.configure(config!, signal);
    const said = unenforced.filter((line) => line.startsWith("ioWrite"));
    expect(said).toEqual(
      io.version === 2 ? [] : ["ioWrite: cgroup v1 limits direct and synced writes, not buffered ones"],
    );
    if (io.version === 1) return;

    // No call of the writer waits for the disk: what is written comes to it from the kernel's own threads.
    const limited = await rate();
    expect(limited).toBeLessThan(1.25 * LIMIT);
    expect(limited).toBeGreaterThan(0.5 * LIMIT);
    const stat = readFileSync(`${io.mount}/${PARENT}/ny-1.1/io.stat`, "utf8");
    const counted = Math.max(...[...stat.matchAll(/wbytes=(\d+)/g)].map(([, bytes]) => Number(bytes)));
    expect(counted).toBeGreaterThan(0.9 * WRITTEN * MIB);

    // Lifted while it runs. The time of a login is in it, and a guest that is translated has a slow one.
    for (const free of configsOf(real.key, { 1: {} })) await backEnd.configure(free, signal);
    expect(await rate()).toBeGreaterThan(1.5 * LIMIT);
  });

  test("operations are limited, and who has no more weight than others has the usual one, both changed while it runs", async () => {
    const { signal } = new AbortController();
    const backEnd = real.backEnd("account");
    const { layout } = await Cgroups.detect(systemClock);
    const { mount, version } = layout.controllers.get("io")!;
    const file = (name: string) => readFileSync(join(mount, PARENT, "ny-2.2", name), "utf8");
    const weight = () => Number(/\d+/.exec(file(version === 1 ? "blkio.bfq.weight" : "io.bfq.weight"))![0]);
    const set = async (some: Partial<Rspec>) => {
      const [config] = configsOf(real.key, { 2: some });
      return (await backEnd.configure(config!, signal)).unenforced.filter((line) => line.startsWith("io"));
    };
    await bringUp(backEnd, configsOf(real.key, { 2: { ioReadOps: OPERATIONS, ioWeight: 300 } }));
    const device = (await real.machine().pool.device(false))!;
    const direct = `dd if=/dev/zero of=/tmp/f bs=4k count=${READS} oflag=sync 2>/dev/null; dd if=/tmp/f of=/dev/null bs=4k iflag=direct 2>&1`;
    const took = async () =>
      Number(/, ([\d.e-]+) s,/.exec(await inSliver(real, 2, direct))?.[1] ?? Number.NaN);
    // The kernel lets a tenth of a second's operations through at once.
    expect(await took()).toBeGreaterThan((0.8 * READS) / OPERATIONS);
    const { usage } = (await real.backEnd("account").inspect(signal))[0]!;
    expect(usage?.ioReadOps).toBeGreaterThan(0.8 * READS);
    if (device.weighs) expect(weight()).toBe(300);
    expect(await set({ ioWeight: 50 })).toEqual(
      device.weighs ? [] : ["ioWeight: the kernel has no bfq, which weighs io of groups"],
    );
    if (device.weighs) expect(weight()).toBe(50);
    expect(file(version === 1 ? "blkio.throttle.read_iops_device" : "io.max").trim()).toBe("");
    expect(await set({})).toEqual([]);
    if (device.weighs) expect(weight()).toBe(100);
  });

  /** Bytes a second, from the first that is written to the last that is on the disk. */
  async function rate(): Promise<number> {
    const file = `/tmp/f${Math.round(systemClock.monotonic())}`;
    const began = systemClock.monotonic();
    const fill = `dd if=/dev/zero of=${file} bs=1M count=${WRITTEN} 2>&1 | tail -1; sync ${file}; rm ${file}`;
    expect(await inSliver(real, 1, fill)).toContain(`${WRITTEN * MIB} bytes`);
    return (WRITTEN * MIB * 1000) / (systemClock.monotonic() - began);
  }
});
