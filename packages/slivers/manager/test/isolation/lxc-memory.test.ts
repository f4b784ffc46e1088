import { readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Cgroups, PARENT } from "../../src/isolation/cgroups/edge/cgroups.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { addressOf, bringUp, configsOf, inSliver } from "./machine/slivers.ts";

const MIB = 1_048_576;

describe.skipIf(whyNot() !== undefined)("memory", () => {
  let real: RealMachine;
  beforeAll(async () => {
    real = await realMachine();
  });
  afterAll(() => real?.stop());

  test("that is full: what the kernel killed is counted for its sliver alone", async () => {
    const backEnd = real.backEnd("account");
    const configs = configsOf(real.key, { 3: { memoryCap: 64 * 1024 }, 4: {} });
    await bringUp(backEnd, configs);
    expect(() => real.ssh(addressOf(3), "tail /dev/zero", "ny-03")).toThrow();
    const { signal } = new AbortController();
    const kills = (await backEnd.inspect(signal)).map(({ memoryKills }) => memoryKills);
    expect(kills).toEqual([expect.any(Number), 0]);
    expect(kills[0]).toBeGreaterThan(0);
    for (const config of configs) await backEnd.destroy(config, signal);
  });

  test("that is guaranteed, where the kernel knows that: from the group of all down to that of the processes; else it is said", async () => {
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

describe.skipIf(whyNot() !== undefined)("memory of all slivers", () => {
  let real: RealMachine;
  beforeAll(async () => {
    real = await realMachine({}, 128 * MIB);
  });
  afterAll(() => real?.stop());

  test("is limited, so that one without a limit of its own takes nothing from the rest of the machine", async () => {
    await bringUp(real.backEnd("account"), configsOf(real.key, { 1: { memoryCap: 0 } }));
    const take = (mib: number) =>
      inSliver(real, 1, `perl -e 'my $x = "x" x (${mib} << 20); print length $x'`);
    expect(await take(16)).toBe(String(16 * MIB));
    const { mount, version } = (await Cgroups.detect(systemClock)).layout.controllers.get("memory")!;
    const file = join(mount, PARENT, version === 2 ? "memory.max" : "memory.limit_in_bytes");
    expect(Number(readFileSync(file, "utf8"))).toBe(128 * MIB);
    // cgroup v1 would swap out what is too much.
    const swaps = readFileSync("/proc/swaps", "utf8").trim().split("\n").length > 1;
    if (version === 2 || !swaps) expect(await take(256)).not.toContain(String(256 * MIB));
    // In v2 the sliver has ended as one; its manager would start it again.
    if (version === 1) expect(await take(16)).toBe(String(16 * MIB));
  });
});
