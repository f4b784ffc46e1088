import { computeLoans, POLICIES, type SliverRecord } from "@nodeyard/sliver";
import type { Resource, Rspec } from "@nodeyard/sliver-protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LENT, loansOf, type Party, surplusOf } from "../../src/lending/index.ts";

const SCALE = { cpuCap: 1, netCap: 1_000, ioRead: 1_048_576 } as const;

const rspec: fc.Arbitrary<Partial<Rspec>> = fc
  .record({
    ...Object.fromEntries(LENT.map((name) => [name, fc.oneof(fc.nat(4000), fc.constant(0))])),
    cpuGuarantee: fc.nat(2000),
    netGuarantee: fc.nat(2000),
  })
  .map((some) => ({
    ...some,
    ...Object.fromEntries(LENT.map((name) => [name, (some as Record<string, number>)[name]! * SCALE[name]])),
  }));

const parties: fc.Arbitrary<readonly Party[]> = fc
  .array(fc.tuple(fc.constantFrom("busy" as const, "idle" as const, "free" as const), rspec), {
    minLength: 1,
    maxLength: 12,
  })
  .map((list) =>
    list.map(([use, given], at) => ({ name: `n${at + 1}`, generation: at + 1, use, rspec: given })),
  );

/** What the manager makes of the rule, by the arithmetic that it really works with. */
function effectOf(all: readonly Party[], revision: keyof typeof POLICIES) {
  const loans = loansOf(all, LENT);
  const records = new Map(all.map((party, at) => [party.name, recordOf(party, at + 1)] as const));
  for (const [name, list] of loans) {
    const lender = records.get(name)!;
    records.set(name, { ...lender, local: { ...lender.local, loans: list } });
  }
  return { loans, records, ...computeLoans(records, POLICIES[revision].minimums, 0) };
}

function recordOf({ name, generation, use, rspec }: Party, incarnation: number): SliverRecord {
  return {
    name,
    stamp: { epoch: 1, number: 1 },
    generation,
    kind: "sliver",
    instantiation: use === "free" ? "not-instantiated" : "plc-instantiated",
    keys: [],
    initscript: "",
    delegations: [],
    rspec: { ...POLICIES.v2.defaults, ...rspec },
    local: { incarnation, loans: [] },
  };
}

const property = (check: (all: readonly Party[], revision: keyof typeof POLICIES) => void) =>
  fc.assert(fc.property(parties, fc.constantFrom("r0" as const, "v2" as const), check), { numRuns: 500 });

describe("loans by policy", () => {
  test("the manager honours every one of them", () =>
    property((all, revision) => {
      const { loanStatuses } = effectOf(all, revision);
      for (const list of loanStatuses.values()) expect(list.filter(({ honoured }) => !honoured)).toEqual([]);
    }));

  test("together the slots of a machine have what they had", () =>
    property((all, revision) => {
      const { effective } = effectOf(all, revision);
      for (const name of LENT) {
        const sum = (of: (party: Party) => number) => all.reduce((total, party) => total + of(party), 0);
        expect(sum(({ name: who }) => effective.get(who)![name])).toBe(
          sum(({ rspec }) => (rspec as Rspec)[name]),
        );
      }
    }));

  test("no idle sliver ends below its guarantee or a tenth of its caps; nothing else of it changes", () =>
    property((all, revision) => {
      const { effective, records } = effectOf(all, revision);
      for (const { name, use } of all) {
        const [before, after] = [records.get(name)!.rspec, effective.get(name)!];
        if (use === "idle") {
          expect(after.cpuCap).toBeGreaterThanOrEqual(Math.min(before.cpuCap, before.cpuGuarantee));
          expect(after.netCap).toBeGreaterThanOrEqual(Math.min(before.netCap, before.netGuarantee));
          for (const one of LENT) expect(after[one]).toBeGreaterThanOrEqual(before[one] / 10);
        }
        for (const one of Object.keys(before) as Resource[])
          if (!(LENT as readonly string[]).includes(one)) expect(after[one]).toBe(before[one]);
      }
    }));

  test("a busy one lends nothing, and never has less than his own; an idle one borrows nothing", () =>
    property((all, revision) => {
      const { loans, effective, records } = effectOf(all, revision);
      for (const { name, use } of all)
        for (const one of LENT) {
          const [before, after] = [records.get(name)!.rspec[one], effective.get(name)![one]];
          if (use === "busy") {
            expect(loans.has(name)).toBe(false);
            expect(after).toBeGreaterThanOrEqual(before);
          } else expect(after).toBeLessThanOrEqual(before);
        }
    }));

  test("all that can be lent is, in parts that differ by one at most, in fewer loans than there are parties", () =>
    property((all) => {
      const loans = [...loansOf(all, LENT).values()].flat();
      for (const one of LENT) {
        const borrowers = all.filter(({ use, rspec }) => use === "busy" && (rspec[one] ?? 0) > 0);
        const lenders = all.filter(({ use }) => use !== "busy");
        const made = loans.filter(({ resource }) => resource === one);
        const surplus = lenders.reduce((sum, party) => sum + surplusOf(party, one), 0);
        const parts = borrowers.map(({ name }) =>
          made.filter(({ to }) => to === name).reduce((sum, { amount }) => sum + amount, 0),
        );
        expect(parts.reduce((sum, part) => sum + part, 0)).toBe(borrowers.length === 0 ? 0 : surplus);
        if (parts.length > 0) expect(Math.max(...parts) - Math.min(...parts)).toBeLessThanOrEqual(1);
        expect(made.length).toBeLessThan(Math.max(1, borrowers.length + lenders.length));
      }
    }));

  test("the order in which slots are listed changes nothing", () =>
    fc.assert(
      fc.property(
        parties.chain((all) =>
          fc.tuple(fc.constant(all), fc.shuffledSubarray([...all], { minLength: all.length })),
        ),
        ([all, other]) => {
          expect(Object.fromEntries(loansOf(other, LENT))).toEqual(Object.fromEntries(loansOf(all, LENT)));
        },
      ),
    ));

  test("one idle of two: the busy one has its surplus, and a resource that is not asked about stays", () => {
    const one = (name: string, generation: number, use: Party["use"]): Party => ({
      name,
      generation,
      use,
      rspec: { cpuCap: 1000, cpuGuarantee: 300, netCap: 1_000_000 },
    });
    expect(Object.fromEntries(loansOf([one("n1", 1, "busy"), one("n2", 2, "idle")], ["cpuCap"]))).toEqual({
      n2: [{ to: "n1", generation: 1, resource: "cpuCap", amount: 700, by: "policy" }],
    });
  });
});
