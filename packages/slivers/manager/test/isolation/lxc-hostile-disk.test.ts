import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import type { LxcBackEnd } from "../../src/isolation/lxc/edge/lxc-back-end.ts";
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
  afterAll(() => real?.stop());

  test("are counted again at the next look, and no sliver is made before", async () => {
    const { signal } = new AbortController();
    const pool = join(real.folder, "pool");
    const device = execFileSync("findmnt", ["-no", "SOURCE", pool], { encoding: "utf8" }).trim();
    const at = execFileSync("sh", ["-c", `ls -d /sys/fs/btrfs/*/devices/${basename(device)}`], {
      encoding: "utf8",
    });
    const file = (name: string) => join(at.trim(), "../../qgroups", name);
    const lost = () => readFileSync(file("inconsistent"), "utf8").trim();
    // A removal is always counted, whatever the kernel's default is.
    expect(readFileSync(file("drop_subtree_threshold"), "utf8").trim()).toBe("8");
    const [one, two, three] = configsOf(real.key, { 1: {}, 2: {}, 3: {} });
    await bringUp(backEnd, [one!, two!]);
    expect(lost()).toBe("0");
    writeFileSync(file("drop_subtree_threshold"), "0");
    await backEnd.destroy(one!, signal);
    execFileSync("btrfs", ["subvolume", "sync", pool]);
    expect(lost()).toBe("1");
    await expect(backEnd.create(three!, signal)).rejects.toThrow(/disk limits in .* do not hold/);
    expect(backEnd.remains()[0]).toMatch(/disk limits in .* do not hold/);
    expect(backEnd.counting()).toBe(true);
    await expect.poll(lost, POLLED).toBe("0");
    writeFileSync(file("drop_subtree_threshold"), "8");
    await bringUp(backEnd, [three!]);
    expect(backEnd.remains()).toEqual([]);
    expect(backEnd.counting()).toBe(false);
  });
});
