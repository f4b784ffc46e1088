import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Capacity } from "../../src/core/capacity.ts";
import { type Delivery, deliverFull, deliverPartial } from "../../src/core/deliver.ts";
import { POLICIES } from "../../src/core/profiles.ts";
import { EMPTY_STATE, type Incoming, type State, withLocal } from "../../src/core/record.ts";
import { expire } from "../../src/core/time.ts";
import { incoming, NAMES, name } from "./arbitrary.ts";

const NONE: Capacity = {};
const doc = (number: number, records: readonly Incoming[], more: Partial<Delivery> = {}): Delivery => ({
  version: { epoch: 0, number },
  digest: "",
  records,
  malformed: [],
  removes: NAMES.length,
  ...more,
});
const full = (state: State, number: number, ...names: string[]) =>
  deliverFull(
    state,
    doc(
      number,
      names.map((one) => incoming(one, number)),
    ),
    NONE,
  ).state;
const start = { ...EMPTY_STATE, safe: false };
const names = (state: State) => [...state.records.keys()].sort();
const some = fc.uniqueArray(name);
const version = fc.integer({ min: 1, max: 20 });

describe("documents, by the numbers of the invariants", () => {
  test("11: the same document twice is the same as once, what was set here included", () =>
    fc.assert(
      fc.property(some, version, (list, number) => {
        const once = full(start, number, ...list);
        const lent = list.length === 0 ? once : withLocal(once, list[0]!, { stopped: true });
        expect(full(lent, number, ...list)).toEqual(lent);
      }),
    ));

  test("12: of two records of one name the newest stays, in whatever order they come", () =>
    fc.assert(
      fc.property(fc.uniqueArray(version, { minLength: 2, maxLength: 4 }), (stamps) => {
        const put = (state: State, number: number) =>
          deliverPartial(state, doc(number, [incoming("ada", number, { initscript: `#!${number}` })]), NONE)
            .state;
        const newest = `#!${Math.max(...stamps)}`;
        expect(stamps.reduce(put, start).records.get("ada")!.initscript).toBe(newest);
        expect([...stamps].reverse().reduce(put, start).records.get("ada")!.initscript).toBe(newest);
      }),
    ));

  test("13: after a full document nothing older is there, and nothing older comes in", () =>
    fc.assert(
      fc.property(some, some, version, version, (before, after, first, more) => {
        const state = full(full(start, first, ...before), first + more, ...after);
        expect(names(state)).toEqual([...after].sort());
        for (const { stamp } of state.records.values())
          expect(stamp.number).toBeGreaterThanOrEqual(first + more);
        const old = doc(first + more - 1, [incoming("eve", first + more - 1)]);
        expect(() => deliverPartial(state, old, NONE)).toThrow(/older/);
      }),
    ));

  test("14: what was set here survives updates; what the document left out is gone", () => {
    const with1 = deliverFull(
      start,
      doc(1, [incoming("ada", 1, { expiresAt: 99, image: "one" })]),
      NONE,
    ).state;
    const lent = withLocal(with1, "ada", { loans: [{ to: "bob", resource: "cpuShare", amount: 1 }] });
    const { local, ...given } = full(lent, 2, "ada").records.get("ada")!;
    expect(local).toEqual(lent.records.get("ada")!.local);
    expect(given).toEqual(incoming("ada", 2));
  });

  test("15: versions never go back; an older full document is refused whole", () =>
    fc.assert(
      fc.property(fc.array(fc.tuple(version, some), { maxLength: 8 }), (documents) => {
        let state: State = start;
        for (const [number, list] of documents) {
          const before = state;
          try {
            state = full(state, number, ...list);
          } catch {
            expect(number).toBeLessThan(before.minimum.number);
          }
          expect(state.minimum.number).toBeGreaterThanOrEqual(before.minimum.number);
          if (number < before.minimum.number) expect(state).toBe(before);
        }
      }),
    ));

  test("17: nothing that has ended is left, and nothing else goes", () =>
    fc.assert(
      fc.property(fc.array(fc.option(fc.nat(20))), fc.nat(20), (ends, now) => {
        const list = ends
          .slice(0, 5)
          .map((end, at) => incoming(NAMES[at]!, 1, end === null ? {} : { expiresAt: end }));
        const state = expire(deliverFull(start, doc(1, list), NONE).state, now);
        const kept = list.filter(({ expiresAt }) => expiresAt === undefined || expiresAt >= now);
        expect(names(state)).toEqual(kept.map((one) => one.name).sort());
      }),
    ));

  test("24: the last document decides, whichever came before", () =>
    fc.assert(
      fc.property(fc.array(some, { minLength: 1, maxLength: 5 }), (lists) => {
        const given = (state: State) => [...state.records.values()].map(({ local: _local, ...one }) => one);
        const after = lists.reduce<State>((state, list, at) => full(state, at + 1, ...list), start);
        const direct = full(start, lists.length, ...lists.at(-1)!);
        const sorted = (state: State) => given(state).sort((a, b) => (a.name < b.name ? -1 : 1));
        expect(sorted(after)).toEqual(sorted(direct));
      }),
    ));

  test("28: promises never sum above capacity; what does not fit is refused whole, newest first", () =>
    fc.assert(
      fc.property(
        fc.array(fc.array(fc.tuple(name, fc.nat(600)), { maxLength: 5 }), { maxLength: 5 }),
        (documents) => {
          const capacity = { cpu: 1000 };
          let state: State = start;
          documents.forEach((list, at) => {
            const unique = [...new Map(list)];
            const records = unique.map(([one, cpuGuarantee]) =>
              incoming(one, at + 1, { rspec: { ...POLICIES.r0.defaults, cpuGuarantee } }),
            );
            const before = state;
            const result = deliverFull(state, doc(at + 1, records), capacity);
            state = result.state;
            const sum = [...state.records.values()].reduce((all, { rspec }) => all + rspec.cpuGuarantee, 0);
            expect(sum).toBeLessThanOrEqual(1000);
            const refused = new Set(result.refused.map((one) => one.name));
            for (const given of records) {
              const now = state.records.get(given.name);
              // Either all of it or, as far as it was there before, nothing.
              if (!refused.has(given.name)) expect(now?.rspec).toEqual(given.rspec);
              else expect(now?.rspec).toEqual(before.records.get(given.name)?.rspec);
            }
          });
        },
      ),
    ));
});

describe("a document that ends most slivers", () => {
  const four = full(start, 1, "ada", "bob", "cyd", "dan");
  const given = (number: number, list: readonly string[], more: Partial<Delivery> = {}) => {
    const { removes: _, ...delivery } = doc(
      number,
      list.map((one) => incoming(one, number)),
    );
    return { ...delivery, ...more };
  };

  test("is refused whole unless it says how many: an empty one, and one of other generations", () => {
    const again = given(2, []);
    expect(() => deliverFull(four, again, NONE)).toThrow(/would end 4 of 4 slivers/);
    expect(() => deliverFull(four, { ...again, removes: 3 }, NONE)).toThrow(/"removes": 4/);
    expect(names(deliverFull(four, { ...again, removes: 4 }, NONE).state)).toEqual([]);
    const others = names(four).map((one) => incoming(one, 2, { generation: 1 }));
    expect(() => deliverFull(four, given(2, [], { records: others }), NONE)).toThrow(/would end 4 of 4/);
  });

  test("half of them, or all of three, need no word", () => {
    expect(names(deliverFull(four, given(2, ["ada", "bob"]), NONE).state)).toEqual(["ada", "bob"]);
    const three = full(start, 1, "ada", "bob", "cyd");
    expect(names(deliverFull(three, given(2, []), NONE).state)).toEqual([]);
  });

  test("after a lost store what is found on the machine counts", () => {
    const found = NAMES.map((one) => ({ name: one, generation: 0 }));
    expect(() => deliverFull(EMPTY_STATE, given(1, []), NONE, found)).toThrow(/would end 5 of 5/);
    expect(names(deliverFull(EMPTY_STATE, given(1, ["ada", "bob", "cyd"]), NONE, found).state)).toHaveLength(
      3,
    );
  });
});

describe("documents, by example", () => {
  const signed = (number: number, records: readonly Incoming[], digest: string): Delivery => ({
    version: { epoch: 3, number },
    digest,
    records: records.map((one) => ({ ...one, stamp: { epoch: 3, number } })),
    malformed: [],
  });

  test("two documents of one version with different contents are two writers", () => {
    const { state } = deliverFull(start, signed(1, [incoming("ada", 1)], "x"), NONE);
    expect(deliverFull(state, signed(1, [incoming("ada", 1)], "x"), NONE).state).toEqual(state);
    expect(() => deliverFull(state, signed(1, [], "y"), NONE)).toThrow(/two launchers/);
  });

  test("a signed document ends the reign of timestamps", () => {
    const { state } = deliverFull(full(start, 2_000_000_000, "ada"), signed(0, [], "x"), NONE);
    expect(names(state)).toEqual([]);
    expect(() => full(state, 2_100_000_000, "ada")).toThrow(/older/);
  });

  test("another generation is another incarnation, without the loans of the one before; an older one is refused", () => {
    const of = (generation: number) => [incoming("ada", 1, { generation })];
    const first = deliverFull(start, signed(1, of(5), "a"), NONE).state;
    const lent = withLocal(first, "ada", {
      index: 7,
      loans: [{ to: "bob", resource: "cpuShare", amount: 1 }],
    });
    const { local } = deliverFull(lent, signed(2, of(6), "b"), NONE).state.records.get("ada")!;
    expect(local.incarnation).not.toBe(first.records.get("ada")!.local.incarnation);
    expect(local).toMatchObject({ loans: [] });
    expect(local.index).toBeUndefined();
    const back = deliverFull(lent, signed(2, of(4), "c"), NONE);
    expect(back.refused).toMatchObject([{ name: "ada", code: "stale" }]);
    expect(back.state.records.get("ada")!.generation).toBe(5);
  });

  test("a sliver that is listed but malformed or listed twice stays as it was", () => {
    const state = full(start, 1, "ada", "bob");
    const next = deliverFull(
      state,
      doc(2, [incoming("bob", 2, { image: "x" }), incoming("bob", 2)], {
        malformed: [{ name: "ada", reason: "bad" }],
      }),
      NONE,
    );
    expect(names(next.state)).toEqual(["ada", "bob"]);
    expect(next.state.records.get("bob")!.image).toBeUndefined();
    expect(next.refused.map(({ code }) => code).sort()).toEqual(["duplicate", "malformed"]);
  });

  test("room that one gives up in a document is there for another in the same", () => {
    const of = (one: string, cpuGuarantee: number, number: number) =>
      incoming(one, number, { rspec: { ...POLICIES.r0.defaults, cpuGuarantee } });
    const capacity = { cpu: 100 };
    const { state } = deliverFull(start, doc(1, [of("ada", 40, 1), of("bob", 60, 1)]), capacity);
    const next = deliverFull(state, doc(2, [of("ada", 60, 2), of("bob", 40, 2)]), capacity);
    expect(next.refused).toEqual([]);
    expect(next.state.records.get("ada")!.rspec.cpuGuarantee).toBe(60);
  });

  test("a lost store is in safe mode until a full document came, and a ticket is not one", () => {
    const ticket = deliverPartial(EMPTY_STATE, doc(1, [incoming("ada", 1)]), NONE).state;
    expect(ticket.safe).toBe(true);
    expect(full(ticket, 1, "ada").safe).toBe(false);
  });
});
