import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import type { Rspec } from "@nodeyard/sliver-protocol";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import { Cgroups, PARENT } from "../../src/isolation/cgroups/edge/cgroups.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { begin, bringUp, configsOf, inSliver } from "./machine/slivers.ts";

/** Bytes a second. */
const SLOW = 4_096;
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

  test("waits at no limit, which is said: every sync of the machine would wait for it", async () => {
    const { signal } = new AbortController();
    const backEnd = real.backEnd("account");
    const { layout } = await Cgroups.detect(systemClock);
    const { mount, version } = layout.controllers.get("io")!;
    const [config] = configsOf(real.key, { 1: { ioWrite: SLOW, ioWriteOps: 1 } });
    await bringUp(backEnd, [config!]);
    const { unenforced } = await backEnd.configure(config!, signal);
    expect(unenforced).toContainEqual(
      expect.stringMatching(/^ioWrite, ioWriteOps: every sync of the machine/),
    );
    const limits =
      version === 1 ? ["write_bps", "write_iops"].map((name) => `blkio.throttle.${name}_device`) : ["io.max"];
    for (const group of ["ny-1.1", "ny-1.1/payload"])
      for (const file of limits) expect(await readIfThere(join(mount, PARENT, group, file))).toBe("");
    // At its limit these would be written in an hour.
    const attack = begin(
      real,
      1,
      `echo begun; for i in $(seq 40); do (while :; do dd if=/dev/zero of=/tmp/f$i bs=512k count=1 oflag=direct; done) 2>/dev/null & done; wait`,
    );
    await once(attack.stdout!, "data", { signal: AbortSignal.timeout(patient(30_000)) });
    expect(spawnSync("sync", { timeout: patient(60_000) }).status).toBe(0);
    attack.kill();
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
    const device = (await real.machine().pool.device())!;
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
});

/** Nothing for a group that has no such file, as LXC's have none of io on cgroup v2. */
async function readIfThere(file: string): Promise<string> {
  return readFile(file, "utf8").then(
    (text) => text.trim(),
    () => "",
  );
}
