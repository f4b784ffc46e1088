import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import type { SliverConfig } from "../../src/core/plan.ts";
import type { LxcBackEnd } from "../../src/isolation/lxc/edge/lxc-back-end.ts";
import { attackFrom, besideNeighbour } from "./machine/beside.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { bringUp, configsOf } from "./machine/slivers.ts";

const POLLED = { timeout: patient(60_000) };

describe.skipIf(whyNot() !== undefined)("disk limits that the kernel no longer counts", () => {
  let real: RealMachine;
  let backEnd: LxcBackEnd;
  beforeAll(async () => {
    real = await realMachine();
    backEnd = real.backEnd("container");
  });
  afterEach(async () => {
    await real.clear();
    expect(await real.leftovers()).toEqual([]);
  });
  afterAll(() => real?.stop());

  /** A file of the kernel about the pool's quota groups. */
  const file = (name: string) => {
    const device = execFileSync("findmnt", ["-no", "SOURCE", pool()], { encoding: "utf8" }).trim();
    const at = execFileSync("sh", ["-c", `ls -d /sys/fs/btrfs/*/devices/${basename(device)}`], {
      encoding: "utf8",
    });
    return join(at.trim(), "../../qgroups", name);
  };
  const pool = () => join(real.folder, "pool");
  const lost = () => readFileSync(file("inconsistent"), "utf8").trim();

  /** Ends a copy so that the kernel no longer counts. */
  async function loseCount(copy: SliverConfig): Promise<void> {
    writeFileSync(file("drop_subtree_threshold"), "0");
    await backEnd.destroy(copy, new AbortController().signal);
    // The first wakes the kernel's thread that removes, the second waits for it.
    execFileSync("btrfs", ["filesystem", "sync", pool()]);
    execFileSync("btrfs", ["subvolume", "sync", pool()]);
    writeFileSync(file("drop_subtree_threshold"), "8");
  }

  test("are counted again at the next look, and no sliver is made before", async () => {
    const { signal } = new AbortController();
    // A removal is always counted, whatever the kernel's default is.
    expect(readFileSync(file("drop_subtree_threshold"), "utf8").trim()).toBe("8");
    const [one, two, three] = configsOf(real.key, { 1: {}, 2: {}, 3: {} });
    await bringUp(backEnd, [one!, two!]);
    expect(lost()).toBe("0");
    await loseCount(one!);
    expect(lost()).toBe("1");
    await expect(backEnd.create(three!, signal)).rejects.toThrow(/disk limits in .* do not hold/);
    expect(backEnd.remains()[0]).toMatch(/disk limits in .* do not hold/);
    expect(backEnd.counting()).toBe(true);
    await expect.poll(lost, POLLED).toBe("0");
    await bringUp(backEnd, [three!]);
    expect(backEnd.remains()).toEqual([]);
    expect(backEnd.counting()).toBe(false);
  });

  test("and are counted again beside a sliver that writes at its limit, nothing of a neighbour's is worse but for fsync and starts", async () => {
    const [hostile, copy] = configsOf(real.key, { 1: {}, 2: {} });
    const full = `dd if=/dev/urandom of=/tmp/f bs=1M count=100 2>/dev/null; echo full
      while :; do head -c 65536 /dev/zero >> /tmp/f; done 2>/dev/null`;
    const attack = async () => {
      await attackFrom(real, 1, full);
      await bringUp(backEnd, [copy!]);
      await loseCount(copy!);
      await expect.poll(lost, POLLED).toBe("0");
    };
    // At a limit btrfs commits before it refuses, which others' commits wait for.
    await besideNeighbour(real, backEnd, { config: hostile!, attack, but: ["fsync", "start"] });
  });
});
