import type { Loan, LoanStatus, Rspec } from "@nodeyard/sliver-protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { computeLoans } from "../../src/core/loans.ts";
import { POLICIES } from "../../src/core/profiles.ts";
import type { SliverRecord } from "../../src/core/record.ts";
import { LENDABLE, loan, MINIMUMS, record, records } from "./arbitrary.ts";

const NOW = 1000;
const run = (all: ReadonlyMap<string, SliverRecord>) => computeLoans(all, MINIMUMS, NOW);
const withLoans = (one: SliverRecord, loans: readonly Loan[]) => ({ ...one, local: { ...one.local, loans } });
const set = (all: ReadonlyMap<string, SliverRecord>, name: string, one: SliverRecord) =>
  new Map([...all, [name, one]]);
const plain = (loanStatuses: readonly LoanStatus[]) => loanStatuses.map(({ honoured }) => honoured);
const honoured = (loanStatuses: readonly LoanStatus[] | undefined, resource: string) =>
  (loanStatuses ?? [])
    .filter((one) => one.honoured && one.resource === resource)
    .reduce((sum, { amount }) => sum + amount, 0);
const property = (check: (all: ReadonlyMap<string, SliverRecord>) => void) =>
  fc.assert(fc.property(records, check), { numRuns: 300 });

describe("loans, by the numbers of the invariants", () => {
  test("1: loans move amounts and never change their sum", () =>
    property((all) => {
      const { effective } = run(all);
      for (const name of LENDABLE) {
        const given = [...all.values()].reduce((sum, { rspec }) => sum + rspec[name], 0);
        const had = [...effective.values()].reduce((sum, rspec) => sum + rspec[name], 0);
        expect(had).toBe(given);
      }
    }));

  test("2: no lender ends below its minimum", () =>
    property((all) => {
      const { effective } = run(all);
      for (const [name, { rspec }] of all)
        for (const resource of LENDABLE)
          expect(effective.get(name)![resource]).toBeGreaterThanOrEqual(
            Math.min(rspec[resource], MINIMUMS[resource]!),
          );
    }));

  test("3: no lender gives more than it has above its minimum", () =>
    property((all) => {
      const { loanStatuses } = run(all);
      for (const [name, { rspec }] of all)
        for (const resource of LENDABLE)
          expect(honoured(loanStatuses.get(name), resource)).toBeLessThanOrEqual(
            Math.max(0, rspec[resource] - MINIMUMS[resource]!),
          );
    }));

  test("4: what cannot be lent stays", () =>
    property((all) => {
      const { effective } = run(all);
      for (const [name, { rspec }] of all)
        for (const [resource, amount] of Object.entries(rspec))
          if (!LENDABLE.includes(resource as keyof Rspec))
            expect(effective.get(name)![resource as keyof Rspec]).toBe(amount);
    }));

  test("5: what was borrowed cannot be lent on", () =>
    property((all) => {
      const [[name]] = [...all] as [[string, SliverRecord]];
      const without = new Map(
        [...all].map(([other, one]) => [
          other,
          other === name
            ? one
            : withLoans(
                one,
                one.local.loans.filter(({ to }) => to !== name),
              ),
        ]),
      );
      expect(run(without).loanStatuses.get(name)).toEqual(run(all).loanStatuses.get(name));
    }));

  test("6: the order of slivers does not matter, and that of a list matters to its lender only", () =>
    property((all) => {
      const turned = new Map([...all].reverse());
      expect(new Map([...run(turned).effective].sort())).toEqual(new Map([...run(all).effective].sort()));
      const [[name, first]] = [...all] as [[string, SliverRecord]];
      const shuffled = set(all, name, withLoans(first, [...first.local.loans].reverse()));
      for (const [other, list] of run(shuffled).loanStatuses)
        if (other !== name) expect(list).toEqual(run(all).loanStatuses.get(other));
    }));

  test("7: a loan at the end never changes the verdict on earlier ones", () =>
    fc.assert(
      fc.property(records, loan, (all, more) => {
        const [[name, first]] = [...all] as [[string, SliverRecord]];
        const longer = set(all, name, withLoans(first, [...first.local.loans, more]));
        expect(run(longer).loanStatuses.get(name)!.slice(0, -1)).toEqual(run(all).loanStatuses.get(name));
      }),
    ));

  test("8: a loan is refused only for a missing borrower, the floor, or what cannot be lent", () =>
    property((all) => {
      const { loanStatuses } = run(all);
      for (const [name, list] of loanStatuses) {
        const residual: Record<string, number> = { ...all.get(name)!.rspec };
        for (const one of list) {
          const borrower = all.get(one.to);
          const minimum = (MINIMUMS as Record<string, number>)[one.resource];
          const capless =
            one.resource.match(/^(cpuCap|io)/) && borrower?.rspec[one.resource as "cpuCap"] === 0;
          const fits = minimum !== undefined && !capless && one.amount <= residual[one.resource]! - minimum;
          expect(one.honoured).toBe(borrower !== undefined && fits);
          if (one.honoured) residual[one.resource]! -= one.amount;
        }
      }
    }));

  test("9: computing is pure", () =>
    property((all) => {
      const before = structuredClone([...all]);
      expect(run(all)).toEqual(run(all));
      expect([...all]).toEqual(before);
    }));

  test("10: without a borrower, its lenders have back exactly what it had of them", () =>
    property((all) => {
      const [gone] = [...all.keys()] as [string];
      const rest = new Map([...all].filter(([name]) => name !== gone));
      for (const [name, one] of rest) {
        const inbound = run(all)
          .loanStatuses.get(name)!
          .filter(({ to }) => to === gone);
        // Nothing else of this lender waited for room, so nothing takes what came back.
        if (
          run(all)
            .loanStatuses.get(name)!
            .some(({ refusal }) => refusal === "floor")
        )
          continue;
        const others = new Map([
          [name, one],
          ...[...rest]
            .filter(([other]) => other !== name)
            .map(([other, r]) => [other, withLoans(r, [])] as const),
        ]);
        const full = new Map([...others, [gone, withLoans(all.get(gone)!, [])]]);
        for (const resource of LENDABLE)
          expect(run(others).effective.get(name)![resource] - run(full).effective.get(name)![resource]).toBe(
            honoured(inbound, resource),
          );
      }
    }));
});

describe("loans, by example", () => {
  const share = (cpuShare: number) => ({ ...POLICIES.r0.defaults, cpuShare });
  const a = record("ada", 1, share(64), [
    { to: "bob", resource: "cpuShare", amount: 40 },
    { to: "cyd", resource: "cpuShare", amount: 10 },
    { to: "bob", resource: "cpuShare", amount: 8 },
  ]);
  const all = new Map([
    ["ada", a],
    ["bob", record("bob", 2, share(32), [{ to: "cyd", resource: "cpuShare", amount: 30 }])],
    ["cyd", record("cyd", 3, share(32))],
  ]);
  const shares = (map: ReadonlyMap<string, Rspec>) =>
    ["ada", "bob", "cyd"].map((name) => map.get(name)?.cpuShare);

  test("the example of the old manager: 40 and 8 of 64 are lent, 10 is passed over, 30 of 32 is not lent on", () => {
    const { effective, loanStatuses } = run(all);
    expect(shares(effective)).toEqual([16, 80, 32]);
    expect(plain(loanStatuses.get("ada")!)).toEqual([true, false, true]);
    expect(loanStatuses.get("ada")![1]!.refusal).toBe("floor");
    expect(loanStatuses.get("bob")![0]!.refusal).toBe("floor");
  });

  test("a lender below his minimum lends nothing, not even 0", () => {
    const poor = new Map([
      ...all,
      ["ada", record("ada", 1, share(8), [{ to: "bob", resource: "cpuShare" as const, amount: 0 }])],
    ]);
    expect(run(poor).loanStatuses.get("ada")![0]).toMatchObject({ honoured: false, refusal: "floor" });
  });

  test("a loan to oneself moves nothing and uses up what is left", () => {
    const own = withLoans(a, [
      { to: "ada", resource: "cpuShare", amount: 40 },
      { to: "bob", resource: "cpuShare", amount: 20 },
    ]);
    const { effective, loanStatuses } = run(set(all, "ada", own));
    expect(plain(loanStatuses.get("ada")!)).toEqual([true, false]);
    expect(effective.get("ada")!.cpuShare).toBe(64);
  });

  test("a loan that has ended, or is to another generation, is kept and not honoured", () => {
    const lent = withLoans(a, [
      { to: "bob", resource: "cpuShare", amount: 1, until: NOW - 1 },
      { to: "bob", resource: "cpuShare", amount: 1, generation: 9 },
      { to: "bob", resource: "disk", amount: 1 },
    ]);
    expect(
      run(set(all, "ada", lent))
        .loanStatuses.get("ada")!
        .map(({ refusal }) => refusal),
    ).toEqual(["ended", "generation", "not-loanable"]);
  });

  test("who has no cap is lent none, and a lender never ends without one", () => {
    const capped = { ...share(32), cpuCap: 500 };
    const lend = (amount: number) => [{ to: "bob", resource: "cpuCap" as const, amount }];
    const free = new Map([...all, ["ada", record("ada", 1, capped, lend(100))]]);
    expect(run(free).effective.get("bob")!.cpuCap).toBe(0);
    const both = new Map([...free, ["bob", record("bob", 2, capped)]]);
    expect(run(both).effective.get("bob")!.cpuCap).toBe(600);
    const whole = new Map([...both, ["ada", record("ada", 1, capped, lend(500))]]);
    expect(run(whole).effective.get("ada")!.cpuCap).toBe(500);
  });
});
