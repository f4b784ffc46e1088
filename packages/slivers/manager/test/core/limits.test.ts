import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assignCores, computeLimits } from "../../src/core/limits.ts";
import { computeLoans } from "../../src/core/loans.ts";
import { POLICIES } from "../../src/core/profiles.ts";
import type { SliverRecord } from "../../src/core/record.ts";
import { MINIMUMS, record, records } from "./arbitrary.ts";

const machine = fc.record({
  cpu: fc.integer({ min: 1, max: 64_000 }),
  link: fc.integer({ min: 1, max: 10_000_000_000 }),
});

/** Guarantee and share of each sliver. */
const GUARANTEES = fc.array(fc.tuple(fc.nat(3000), fc.integer({ min: 1, max: 64 })), {
  minLength: 1,
  maxLength: 8,
});

/** Limits of slivers with these guarantees and shares, and the sum of their weights. */
function weighed(list: readonly (readonly [number, number])[], cpu: number) {
  const effective = new Map(
    list.map(([cpuGuarantee, cpuShare], at) => [
      `s${at}`,
      { ...POLICIES.r0.defaults, cpuGuarantee, cpuShare },
    ]),
  );
  const limits = computeLimits(effective, { cpu, link: 1 });
  const sum = [...limits.values()].reduce((all, { cpuWeight }) => all + cpuWeight, 0);
  return { effective, limits, sum };
}

describe("kernel values, by the numbers of the invariants", () => {
  test("29: no cap is below its guarantee, after loans too", () =>
    fc.assert(
      fc.property(records, machine, (all, on) => {
        const { effective } = computeLoans(all, MINIMUMS, 0);
        for (const [name, { cpuCap, net, net2 }] of computeLimits(effective, on)) {
          if (cpuCap !== 0) expect(cpuCap).toBeGreaterThanOrEqual(effective.get(name)!.cpuGuarantee);
          for (const { rate, ceil } of [net, net2]) expect(ceil).toBeGreaterThanOrEqual(rate);
        }
      }),
    ));

  test("30: what is written is a function of effective rspecs, within what the kernel takes", () =>
    fc.assert(
      fc.property(records, machine, (all, on) => {
        const { effective } = computeLoans(all, MINIMUMS, 0);
        const limits = computeLimits(effective, on);
        expect(new Map([...computeLimits(new Map([...effective].reverse()), on)].sort())).toEqual(
          new Map([...limits].sort()),
        );
        for (const { cpuWeight, net, net2 } of limits.values()) {
          expect(Number.isInteger(cpuWeight) && cpuWeight >= 1 && cpuWeight <= 10_000).toBe(true);
          for (const { rate, ceil } of [net, net2]) expect(rate <= ceil && ceil <= on.link).toBe(true);
        }
      }),
    ));

  test("28 at work: by weight alone each sliver gets its guarantee, when guarantees fit", () =>
    fc.assert(
      fc.property(GUARANTEES, (list) => {
        const cpu = 24_000;
        const { effective, limits, sum } = weighed(list, cpu);
        // A weight is a whole number of ten thousand: that much is lost at most.
        for (const [name, { cpuGuarantee }] of effective)
          expect((cpu * limits.get(name)!.cpuWeight) / sum).toBeGreaterThanOrEqual(cpuGuarantee * 0.999 - 5);
      }),
    ));

  test("28 against the rest of the machine: beside four busy processes on each CPU, each sliver still gets its guarantee", () =>
    fc.assert(
      fc.property(GUARANTEES, fc.integer({ min: 1, max: 24 }), (list, cores) => {
        const cpu = 1000 * cores;
        fc.pre(list.reduce((sum, [guarantee]) => sum + guarantee, 0) <= cpu / 2);
        const { effective, limits, sum } = weighed(list, cpu);
        for (const [name, { cpuGuarantee }] of effective) {
          const { allWeight, cpuWeight } = limits.get(name)!;
          // Where hardly anything is left to be shared, or there are many CPUs, the weight is at its bounds.
          if (cpuGuarantee === 0 || allWeight === 10_000 || allWeight === 3_600 * cores) continue;
          const together = (cpu * allWeight) / (allWeight + 400 * cores);
          const least = Math.min(cpuGuarantee, 0.9 * cpu * (cpuWeight / sum));
          expect((together * cpuWeight) / sum).toBeGreaterThanOrEqual(least * 0.99 - 5);
        }
      }),
    ));

  test("without a guarantee, slivers together weigh what others do; a guarantee changes that in few steps", () => {
    const of = (...guarantees: number[]) => {
      const rspecs = guarantees.map(
        (cpuGuarantee, at) => [`s${at}`, { ...POLICIES.v2.defaults, cpuGuarantee }] as const,
      );
      return computeLimits(new Map(rspecs), { cpu: 2000, link: 1 }).get("s0")!.allWeight;
    };
    expect(of(0, 0)).toBe(100);
    expect(of(400, 0)).toBe(800);
    expect(of(2000)).toBe(7_200);
    const growing = Array.from({ length: 100 }, (_, more) => of(...Array(more + 1).fill(20)));
    expect(new Set(growing).size).toBeLessThanOrEqual(8);
  });

  test("shares of three to one are weights of three to one", () => {
    const share = (cpuShare: number) => ({ ...POLICIES.v2.defaults, cpuShare });
    const limits = computeLimits(
      new Map([
        ["a", share(96)],
        ["b", share(32)],
      ]),
      { cpu: 2000, link: 1 },
    );
    expect(limits.get("a")!.cpuWeight / limits.get("b")!.cpuWeight).toBeCloseTo(3, 2);
  });

  test("31: cores of two slivers are disjoint, one at least is shared, and no more are given than there are", () =>
    fc.assert(
      fc.property(fc.array(fc.nat(6), { maxLength: 5 }), fc.integer({ min: 1, max: 8 }), (wanted, pairs) => {
        const siblings = Array.from({ length: pairs * 2 }, (_, core) => [core, core ^ 1]);
        const all = new Map<string, SliverRecord>();
        for (const [at, cpuCores] of wanted.entries())
          all.set(
            `s${at}`,
            record(`s${at}`, at + 1, { ...POLICIES.r0.defaults, cpuCores, cpuCoresBestEffort: 0 }),
          );
        const effective = new Map([...all].map(([name, { rspec }]) => [name, rspec]));
        const { cores, shared, missing } = assignCores(all, effective, siblings);
        const own = [...cores]
          .filter(([name]) => effective.get(name)!.cpuCores > 0 && cores.get(name) !== shared)
          .flatMap(([name, list]) =>
            list.filter((core) => !shared.includes(core)).map((core) => `${name}:${core}`),
          );
        const taken = own.map((one) => one.split(":")[1]);
        expect(new Set(taken).size).toBe(taken.length);
        expect(shared.length).toBeGreaterThanOrEqual(1);
        expect(taken.length + shared.length).toBe(pairs * 2);
        for (const [name, { cpuCores }] of effective) {
          const got = own.filter((one) => one.startsWith(`${name}:`)).length;
          expect(got + (missing.get(name) ?? 0)).toBe(cpuCores);
        }
      }),
    ));

  test("a new sliver never moves the cores of older ones", () => {
    const wants = (name: string, age: number, cpuCores: number) =>
      record(name, age, { ...POLICIES.r0.defaults, cpuCores, cpuCoresBestEffort: 0 });
    const siblings = [
      [0, 1],
      [0, 1],
      [2, 3],
      [2, 3],
    ];
    const sets = (all: SliverRecord[]) => {
      const map = new Map(all.map((one) => [one.name, one]));
      return assignCores(map, new Map(all.map(({ name, rspec }) => [name, rspec])), siblings).cores;
    };
    const before = sets([wants("zoe", 1, 2)]);
    expect(before.get("zoe")).toEqual([0, 1]);
    expect(sets([wants("ada", 2, 1), wants("zoe", 1, 2)]).get("zoe")).toEqual([0, 1]);
  });
});
