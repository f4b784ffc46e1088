import fc from "fast-check";
import { expect, test } from "vitest";
import { compareFigures, type Figures, together } from "../src/score.ts";

const amount = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.double({ min: 0, max: 10, noNaN: true }));
const figures: fc.Arbitrary<Figures> = fc.record({
  fits: fc.boolean(),
  foreign: fc.boolean(),
  weight: amount,
  price: fc.option(amount),
  failures: fc.integer({ min: 0, max: 5 }),
  said: fc.boolean(),
  room: fc.oneof(amount, fc.constant(Number.POSITIVE_INFINITY)),
  load: fc.integer({ min: 0, max: 5 }),
  readyMs: fc.option(amount),
  index: fc.integer({ min: 0, max: 9 }),
});

test("the score is a total order", () => {
  fc.assert(
    fc.property(figures, figures, figures, (a, b, c) => {
      const [ab, ba] = [compareFigures(a, b), compareFigures(b, a)];
      expect([-1, 0, 1]).toContain(ab);
      expect(ab + ba).toBe(0);
      expect(compareFigures(a, a)).toBe(0);
      if (ab <= 0 && compareFigures(b, c) <= 0) expect(compareFigures(a, c)).toBeLessThanOrEqual(0);
      // Equal only where nothing tells them apart.
      if (ab === 0)
        expect({ ...a, price: a.price ?? -1, readyMs: a.readyMs ?? 0 }).toEqual({
          ...b,
          price: b.price ?? -1,
          readyMs: b.readyMs ?? 0,
        });
    }),
  );
});

/** Each figure made better, all else being equal. */
const better: Readonly<Record<keyof Figures, (one: Figures, by: number) => Partial<Figures>>> = {
  fits: () => ({ fits: true }),
  foreign: () => ({ foreign: false }),
  weight: ({ weight }, by) => ({ weight: weight + by }),
  price: ({ price }, by) => ({ price: Math.max(0, (price ?? 100) - by) }),
  failures: ({ failures }, by) => ({ failures: Math.max(0, failures - by) }),
  said: () => ({ said: true }),
  room: ({ room }, by) => ({ room: room + by }),
  load: ({ load }, by) => ({ load: Math.max(0, load - by) }),
  readyMs: ({ readyMs }, by) => ({ readyMs: Math.max(0, (readyMs ?? 0) - by) }),
  index: ({ index }, by) => ({ index: Math.max(0, index - by) }),
};

test.each(Object.keys(better) as (keyof Figures)[])("a better %s makes no offering worse", (name) => {
  fc.assert(
    fc.property(figures, figures, fc.integer({ min: 1, max: 5 }), (one, other, by) => {
      const improved = { ...one, ...better[name](one, by) };
      expect(compareFigures(improved, one)).toBeLessThanOrEqual(0);
      expect(compareFigures(improved, other)).toBeLessThanOrEqual(Math.max(0, compareFigures(one, other)));
      if (compareFigures(one, other) < 0) expect(compareFigures(improved, other)).toBe(-1);
    }),
  );
});

test("the best does not depend on the order in which offerings are looked at", () => {
  fc.assert(
    fc.property(fc.array(figures, { minLength: 1, maxLength: 10 }), fc.array(fc.nat()), (list, keys) => {
      // As in a file: each has a place of its own.
      const all = list.map((one, index) => ({ ...one, index }));
      const other = all.map((one, at) => [keys[at] ?? 0, one] as const).sort(([a], [b]) => a - b);
      const [first] = all.toSorted(compareFigures);
      expect(other.map(([, one]) => one).toSorted(compareFigures)[0]).toEqual(first);
    }),
  );
});

test("a nodeset is no better than the worst of it in what can be had, and no figure of it is NaN", () => {
  fc.assert(
    fc.property(fc.array(figures, { minLength: 1, maxLength: 5 }), (all) => {
      const set = together(all);
      for (const value of Object.values(set)) expect(value).not.toBeNaN();
      expect(set.fits).toBe(all.every(({ fits }) => fits));
      for (const one of all) expect(set.room).toBeLessThanOrEqual(one.room);
      expect(together([all[0]!])).toEqual(all[0]);
    }),
  );
});
