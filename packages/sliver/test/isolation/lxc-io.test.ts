import { readFileSync } from "node:fs";
import { systemClock } from "@nodeyard/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Cgroups, PARENT } from "../../src/isolation/cgroups/edge/cgroups.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { bringUp, configsOf, inSliver } from "./machine/slivers.ts";

const MIB = 1_048_576;
const WRITTEN = 16;
/** Bytes a second. */
const LIMIT = 2 * MIB;

describe.skipIf(whyNot() !== undefined)("what a sliver writes to its disk", { timeout: 180_000 }, () => {
  let real: RealMachine;
  beforeAll(async () => {
    real = await realMachine();
  }, 1_800_000);
  afterAll(() => real?.stop(), 60_000);

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

  /** Bytes a second, from the first that is written to the last that is on the disk. */
  async function rate(): Promise<number> {
    const file = `/tmp/f${Math.round(systemClock.monotonic())}`;
    const began = systemClock.monotonic();
    const fill = `dd if=/dev/zero of=${file} bs=1M count=${WRITTEN} 2>&1 | tail -1; sync ${file}; rm ${file}`;
    expect(await inSliver(real, 1, fill)).toContain(`${WRITTEN * MIB} bytes`);
    return (WRITTEN * MIB * 1000) / (systemClock.monotonic() - began);
  }
});
