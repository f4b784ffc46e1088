import { type Loan, RESOURCES, type Resource, type Rspec } from "@nodeyard/sliver-protocol";
import fc from "fast-check";
import { POLICIES } from "../../src/core/profiles.ts";
import { EMPTY_STATE, type Incoming, type SliverRecord, type State } from "../../src/core/record.ts";

export const MINIMUMS = POLICIES.r0.minimums;
export const LENDABLE = Object.keys(MINIMUMS) as Resource[];
export const NAMES = ["ada", "bob", "cyd", "dan", "eve"] as const;

export const name = fc.constantFrom(...NAMES);
export const amount = fc.oneof(fc.nat(100), fc.constantFrom(0, 8, 16, 32, 1_000_000_000));

/** Some of each resource; the rest is the default. */
export const rspec: fc.Arbitrary<Rspec> = fc
  .record(Object.fromEntries(LENDABLE.map((one) => [one, amount])))
  .map((some) => ({ ...POLICIES.r0.defaults, ...some }));

export const loan: fc.Arbitrary<Loan> = fc.record({
  to: fc.oneof(name, fc.constant("nobody")),
  resource: fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom<Resource>("cpuShare", "netCap", "cpuGuarantee", "cpuCap") },
    { weight: 1, arbitrary: fc.constantFrom(...RESOURCES) },
  ),
  amount: fc.nat(60),
});

export const loans = fc.array(loan, { maxLength: 8 });

export function record(
  name: string,
  incarnation: number,
  rspec: Rspec,
  loans: readonly Loan[] = [],
  more: Partial<SliverRecord> = {},
): SliverRecord {
  return {
    name,
    stamp: { epoch: 0, number: 10 },
    generation: 0,
    kind: "sliver",
    instantiation: "plc-instantiated",
    keys: [],
    initscript: "",
    delegations: [],
    rspec,
    local: { incarnation, loans },
    ...more,
  };
}

/** Some of the five slivers, each with an rspec and loans. */
export const records: fc.Arbitrary<ReadonlyMap<string, SliverRecord>> = fc
  .uniqueArray(fc.tuple(name, rspec, loans), { selector: ([one]) => one, minLength: 1, maxLength: 5 })
  .map((list) => new Map(list.map(([one, given, lent], at) => [one, record(one, at + 1, given, lent)])));

export function incoming(name: string, number: number, more: Partial<Incoming> = {}): Incoming {
  return {
    name,
    stamp: { epoch: 0, number },
    generation: 0,
    kind: "sliver",
    instantiation: "plc-instantiated",
    keys: [],
    initscript: "",
    delegations: [],
    rspec: POLICIES.r0.defaults,
    ...more,
  };
}

export function stateOf(records: ReadonlyMap<string, SliverRecord>, more: Partial<State> = {}): State {
  return { ...EMPTY_STATE, safe: false, nextIncarnation: 100, records, ...more };
}
