import { readFileSync } from "node:fs";
import { systemClock } from "@nodeyard/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Cgroups, PARENT } from "../../src/isolation/cgroups/edge/cgroups.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { bringUp, configsOf } from "./machine/slivers.ts";

const MIB = 1_048_576;

describe.skipIf(whyNot() !== undefined)("a guarantee of memory", { timeout: 120_000 }, () => {
  let real: RealMachine;
  beforeAll(async () => {
    real = await realMachine();
  }, 1_800_000);
  afterAll(() => real?.stop(), 60_000);

  test("is one where the kernel knows it: from the group of all down to that of the processes; else that is said", async () => {
    const { signal } = new AbortController();
    const backEnd = real.backEnd("account");
    const memory = (await Cgroups.detect(systemClock)).layout.controllers.get("memory")!;
    const configs = (first: number) =>
      configsOf(real.key, { 1: { memoryGuarantee: first * 1024 }, 2: { memoryGuarantee: 16 * 1024 } });
    await bringUp(backEnd, configs(32));
    const said = (await backEnd.configure(configs(32)[0]!, signal)).unenforced;
    if (memory.version === 1) {
      expect(said).toContain("memoryGuarantee: cgroup v1 protects no memory from others");
      return;
    }
    expect(said.filter((line) => line.startsWith("memory"))).toEqual([]);
    const guaranteed = (group: string) =>
      Number(readFileSync(`${memory.mount}/${PARENT}${group}/memory.min`, "utf8")) / MIB;
    const all = () => ["", "/ny-1.1", "/ny-1.1/payload", "/ny-2.2/payload"].map(guaranteed);
    expect(all()).toEqual([48, 32, 32, 16]);
    // Changed while it runs, and given back by who goes.
    await backEnd.configure(configs(8)[0]!, signal);
    expect(all()).toEqual([24, 8, 8, 16]);
    await backEnd.destroy(configs(8)[0]!, signal);
    expect(guaranteed("")).toBe(16);
  });
});
