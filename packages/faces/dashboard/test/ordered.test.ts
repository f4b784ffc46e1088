import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Counts } from "../browser/data/counts.ts";
import { Ordered } from "../browser/data/ordered.ts";
import { Table } from "../browser/data/table.ts";

interface Row {
  readonly state: string;
  readonly rank: number;
}
const row = fc.record({ state: fc.constantFrom("ready", "used", "hold"), rank: fc.nat(5) });
/** Batches of last states by id, with removals. */
const batches = fc.array(
  fc.dictionary(fc.constantFrom(..."abcdefghijkl"), fc.option(row, { nil: undefined }), { maxKeys: 8 }),
);

describe("a list of a table", () => {
  test.each([true, false])("has after any changes the order of a new one (descending: %s)", (descending) => {
    fc.assert(
      fc.property(batches, (all) => {
        const table = new Table<Row>();
        const order = {
          keeps: ({ state }: Row) => state !== "hold",
          value: ({ rank }: Row) => rank,
          descending,
        };
        const list = new Ordered(table, order);
        table.listen((changes) => void list.apply(changes));
        for (const batch of all) {
          table.apply(new Map(Object.entries(batch)));
          expect(contents(list)).toEqual(contents(new Ordered(table, order)));
        }
        for (const [at, id] of contents(list).entries()) expect(list.indexOf(id)).toBe(at);
      }),
    );
  });

  test("is not different when a row changed that it does not show", () => {
    const table = new Table<Row>();
    const list = new Ordered(table, {
      keeps: ({ state }) => state === "ready",
      value: () => 0,
      descending: false,
    });
    const reported: boolean[] = [];
    table.listen((changes) => void reported.push(list.apply(changes)));
    table.apply(new Map([["a", { state: "used", rank: 1 }]]));
    table.apply(new Map([["a", { state: "ready", rank: 1 }]]));
    table.apply(new Map([["a", undefined]]));
    expect(reported).toEqual([false, true, true]);
  });
});

test("counts are those of counting anew, and groups that are empty are gone", () => {
  fc.assert(
    fc.property(batches, (all) => {
      const table = new Table<Row>();
      const counts = new Counts<Row>(
        ({ rank }) => [`rank ${rank}`, "all"],
        ({ state }) => state,
      );
      table.listen((changes) => counts.apply(changes));
      for (const batch of all) table.apply(new Map(Object.entries(batch)));
      const anew = new Counts<Row>(
        ({ rank }) => [`rank ${rank}`, "all"],
        ({ state }) => state,
      );
      anew.apply([...table.entries()].map(([id, after]) => ({ id, before: undefined, after })));
      expect(plain(counts.groups)).toEqual(plain(anew.groups));
    }),
  );
});

function contents(list: Ordered<Row>): string[] {
  return Array.from({ length: list.length }, (_, at) => list.at(at)!.id);
}

function plain(groups: ReadonlyMap<string, ReadonlyMap<string, number>>) {
  return Object.fromEntries([...groups].map(([name, states]) => [name, Object.fromEntries(states)]));
}
