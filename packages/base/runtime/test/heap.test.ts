import fc from "fast-check";
import { expect, test } from "vitest";
import { Heap } from "../src/index.ts";

const steps = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.record({ push: fc.integer({ min: 0, max: 20 }) }) },
    { weight: 3, arbitrary: fc.constant("pop" as const) },
    { weight: 1, arbitrary: fc.record({ drop: fc.integer({ min: 2, max: 5 }) }) },
  ),
  { maxLength: 200 },
);

test("what comes out is what a sorted list would give, whatever went in, came out or was dropped before", () => {
  fc.assert(
    fc.property(steps, (all) => {
      const heap = new Heap<number>((a, b) => a - b);
      let sorted: number[] = [];
      for (const step of all) {
        if (step === "pop") expect(heap.pop()).toBe(sorted.shift());
        else if ("push" in step) {
          heap.push(step.push);
          sorted.push(step.push);
          sorted.sort((a, b) => a - b);
        } else {
          heap.keep((item) => item % step.drop !== 0);
          sorted = sorted.filter((item) => item % step.drop !== 0);
        }
        expect([heap.size, heap.peek()]).toEqual([sorted.length, sorted[0]]);
      }
      while (sorted.length > 0) expect(heap.pop()).toBe(sorted.shift());
      expect(heap.pop()).toBeUndefined();
    }),
  );
});

test("adding, taking and dropping cost the logarithm of what is in, not all of it", () => {
  let compared = 0;
  const heap = new Heap<number>((a, b) => {
    compared++;
    return a - b;
  });
  const count = 4_096;
  for (let item = 0; item < count; item++) heap.push((item * 2_654_435_761) % count);
  for (let item = 0; item < count; item++) heap.pop();
  expect(compared).toBeLessThan(count * 3 * Math.log2(count));
});
