import fc from "fast-check";
import { expect, test } from "vitest";
import { SortedQueue } from "../src/sorted-queue.ts";

const order = (a: number, b: number) => a - b;
const item = fc.integer({ min: 0, max: 2_000 });
/** Runs of additions and removals, so that chunks are cut in two, emptied and put together. */
const steps = fc.array(
  fc.record({
    add: fc.boolean(),
    from: item,
    count: fc.integer({ min: 1, max: 600 }),
    by: fc.constantFrom(1, 3, 7),
  }),
  { maxLength: 12 },
);

test("it is a sorted list without doubles, whatever was added and taken out before", () => {
  fc.assert(
    fc.property(steps, item, (all, probe) => {
      const queue = new SortedQueue<number>(order);
      const model = new Set<number>();
      for (const { add, from, count, by } of all) {
        for (let step = 0; step < count; step++) {
          const value = (from + step * by) % 2_000;
          if (add) expect(queue.add(value)).toBe(!model.has(value));
          else expect(queue.delete(value)).toBe(model.has(value));
          if (add) model.add(value);
          else model.delete(value);
        }
        const sorted = [...model].sort(order);
        expect([...queue]).toEqual(sorted);
        expect([queue.size, queue.at(0), queue.at(300), queue.at(sorted.length)]).toEqual([
          sorted.length,
          sorted[0],
          sorted[300],
          undefined,
        ]);
        expect(queue.has(probe)).toBe(model.has(probe));
        expect(queue.indexOf(probe)).toBe(sorted.indexOf(probe));
        expect(queue.last()).toBe(sorted.at(-1));
        expect(queue.after(probe)).toBe(sorted.find((value) => value > probe));
        expect(queue.find((value) => value >= probe)).toBe(sorted.find((value) => value >= probe));
      }
    }),
    { numRuns: 60 },
  );
});

test("another object that compares as equal is found and taken out too", () => {
  const queue = new SortedQueue<{ readonly at: number; readonly note: string }>((a, b) => a.at - b.at);
  queue.add({ at: 1, note: "one" });
  expect(queue.has({ at: 1, note: "copy" })).toBe(true);
  expect(queue.delete({ at: 1, note: "copy" })).toBe(true);
  expect(queue.size).toBe(0);
});

test("finding a place among 20,000 takes no more comparisons than a bisection", () => {
  let compared = 0;
  const queue = new SortedQueue<number>((a, b) => {
    compared++;
    return a - b;
  });
  const count = 20_000;
  for (let step = 0; step < count; step++) queue.add((step * 7_919) % count);
  for (let step = 0; step < count; step++) queue.delete((step * 104_729) % count);
  expect(queue.size).toBe(0);
  expect(compared).toBeLessThan(2 * count * (Math.ceil(Math.log2(count)) + 4));
});
