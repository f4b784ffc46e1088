import { expect, test } from "vitest";
import { Installation } from "../planning/installation.ts";
import { RandomPool } from "../planning/random-pool.ts";

test("an installation has the stated contents, and the steps leave them unchanged", () => {
  const installation = new Installation(200, 100);
  const size = { requests: 200, nodes: 100 };
  expect(installation.size).toEqual(size);
  for (let turn = 0; turn < 30; turn++) {
    installation.newRequest();
    installation.requestGone();
    const served = [installation.nodeFreed(), installation.nodeFreed()];
    expect(installation.size).toEqual({ requests: 200, nodes: 98 });
    for (const one of served) installation.nodeReady(one);
    for (const one of served) installation.fulfilled(one);
    installation.componentChange();
    for (const _ of served) installation.newRequest();
    expect(installation.size).toEqual(size);
  }
});

test("a pool returns every item once, and never one that was removed by name", () => {
  const pool = new RandomPool<number>();
  for (let item = 0; item < 10; item++) pool.add(item);
  for (const item of [9, 0, 4, 4]) pool.delete(item);
  const taken = [0.99, 0, 0.5, 0.3, 0.7, 0.1, 0.9].map((share) => pool.take(share));
  expect(taken.sort((a, b) => a - b)).toEqual([1, 2, 3, 5, 6, 7, 8]);
  expect(pool.size).toBe(0);
});
