import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { systemClock } from "@nodeyard/runtime";
import type { Rspec } from "@nodeyard/sliver-protocol";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { computeLoans } from "../../src/core/loans.ts";
import type { SliverConfig } from "../../src/core/plan.ts";
import { POLICIES } from "../../src/core/profiles.ts";
import type { SliverRecord } from "../../src/core/record.ts";
import type { LxcBackEnd } from "../../src/isolation/lxc/edge/lxc-back-end.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { begin, bringUp, configsOf, inSliver } from "./machine/slivers.ts";

/** Milliseconds over which a split is measured, and before which it may still settle. */
const MEASURED = 4_000;

describe.skipIf(whyNot() !== undefined)("shares and loans, in the kernel", () => {
  let real: RealMachine;
  let backEnd: LxcBackEnd;
  beforeAll(async () => {
    real = await realMachine();
    backEnd = real.backEnd("account");
  });
  afterEach(() => real.clear());
  afterAll(() => real?.stop());

  test("3:1 under full load, and a loan of half the surplus moves it at once", async () => {
    const shares: Record<number, Partial<Rspec>> = { 1: { cpuShare: 96 }, 2: { cpuShare: 32 } };
    // One core for both, so that they fight for it whatever else the machine does.
    const before = configsOf(real.key, shares, [0]);
    await bringUp(backEnd, before);
    const loads = [1, 2].map((index) => begin(real, index, "while :; do :; done"));
    try {
      await ratioIs(3);

      // The lender keeps his floor: of 96 with a floor of 32, half of what is above is 32.
      const lent = effectiveAfter(before, "sliver1", "sliver2", 32);
      expect(lent.map(({ cpuShare }) => cpuShare)).toEqual([64, 64]);
      const after = configsOf(real.key, { 1: lent[0]!, 2: lent[1]! }, [0]);
      const { signal } = new AbortController();
      for (const config of after)
        expect((await backEnd.configure(config, signal)).unenforced).not.toContain("cpu");
      await ratioIs(1);
    } finally {
      for (const load of loads) load.kill();
    }
  });

  test("what a sliver uses now is what it used since its counters were read before, half a minute ago at least", async () => {
    const { signal } = new AbortController();
    let ahead = 0;
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + ahead };
    const watched = real.backEnd("account", clock);
    await bringUp(watched, configsOf(real.key, { 1: {} }));
    const used = async () => (await watched.inspect(signal))[0]!.usage!;
    const first = await used();
    expect(first.cpuNow).toBeUndefined();
    await inSliver(real, 1, "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done");
    ahead = 60_000;
    const { cpu, cpuNow } = await used();
    expect(cpuNow).toBeGreaterThan(0);
    expect(cpuNow).toBeLessThanOrEqual(Math.round((cpu! - first.cpu!) / 60));
  });

  test("a guarantee holds beside another sliver and four busy processes of the machine", async () => {
    await bringUp(backEnd, configsOf(real.key, { 1: { cpuGuarantee: 450 }, 2: {} }, [0]));
    const loads = [1, 2].map((index) => begin(real, index, "while :; do :; done"));
    const rivals = Array.from({ length: 4 }, () =>
      spawn("taskset", ["-c", "0", "sh", "-c", "while :; do :; done"], { stdio: "ignore" }),
    );
    try {
      // Of what they have together, so that it does not matter what else the machine does meanwhile.
      const uses = () => [usage(1), usage(2), ...rivals.map(({ pid }) => processUsage(pid!))];
      const part = async () => {
        const before = uses();
        await pause(MEASURED);
        const [own, ...others] = uses().map((now, at) => now - before[at]!);
        return own! / others.reduce((sum, one) => sum + one, own!);
      };
      await expect.poll(part).toBeGreaterThan(0.45);
    } finally {
      for (const one of [...loads, ...rivals]) one.kill();
    }
  });

  test("a cap holds on an idle machine, and is lifted while it runs", async () => {
    const { signal } = new AbortController();
    await bringUp(backEnd, configsOf(real.key, { 1: { cpuCap: 200 } }));
    const load = begin(real, 1, "while :; do :; done");
    try {
      await pause(500);
      expect(await used(1)).toBeLessThan(0.22);
      for (const config of configsOf(real.key, { 1: { cpuCap: 600 } }))
        await backEnd.configure(config, signal);
      let more = 0;
      // More than the old cap allows, however little of the CPU others leave.
      await expect.poll(async () => (more = await used(1))).toBeGreaterThan(0.22);
      expect(more).toBeLessThan(0.65);
    } finally {
      load.kill();
    }
  });
});

function effectiveAfter(
  configs: readonly SliverConfig[],
  lender: string,
  borrower: string,
  amount: number,
): Rspec[] {
  const records = new Map(
    configs.map((config): [string, SliverRecord] => [
      config.name,
      {
        ...recordOf(config),
        local: {
          incarnation: config.incarnation,
          loans: config.name === lender ? [{ to: borrower, resource: "cpuShare", amount }] : [],
        },
      },
    ]),
  );
  const { effective } = computeLoans(records, POLICIES.v2.minimums, 0);
  return configs.map(({ name }) => effective.get(name)!);
}

function recordOf({ name, effective, keys }: SliverConfig): Omit<SliverRecord, "local"> {
  return {
    name,
    stamp: { epoch: 1, number: 1 },
    generation: 1,
    kind: "sliver",
    instantiation: "plc-instantiated",
    keys,
    initscript: "",
    delegations: [],
    rspec: effective,
  };
}

/** Measured again where a login takes long or other work disturbs it: a split that is wrong is wrong each time. */
const ratioIs = (wanted: number) =>
  expect.poll(ratio).toSatisfy((is: number) => is > wanted * 0.95 && is < wanted * 1.05);

/** CPU time of sliver 1 over that of sliver 2, by the kernel's own count. */
async function ratio(): Promise<number> {
  const before = [1, 2].map(usage);
  await pause(MEASURED);
  const [one, two] = [1, 2].map((index, at) => usage(index) - before[at]!);
  return one! / two!;
}

/** Part of one CPU that it has used meanwhile. */
async function used(index: number): Promise<number> {
  const [cpu, time] = [usage(index), systemClock.monotonic()];
  await pause(2_000);
  return (usage(index) - cpu) / 1e6 / (systemClock.monotonic() - time);
}

/** Nanoseconds. */
function usage(index: number): number {
  const group = `nodeyard-slivers/ny-${index}.${index}`;
  try {
    return Number(readFileSync(`/sys/fs/cgroup/cpuacct/${group}/cpuacct.usage`, "utf8"));
  } catch {
    const stat = readFileSync(`/sys/fs/cgroup/${group}/cpu.stat`, "utf8");
    return Number(/usage_usec (\d+)/.exec(stat)![1]) * 1000;
  }
}

/** Nanoseconds of CPU of one process; the kernel counts hundredths of seconds. */
function processUsage(pid: number): number {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ").slice(11, 13);
  return (Number(user) + Number(system)) * 1e7;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
