import { expect, test } from "vitest";
import { latest } from "../../src/daemon/accounts.ts";

test("never twice at the same time, and once more for all who called meanwhile", async () => {
  let now = 0;
  let most = 0;
  let runs = 0;
  const ends: (() => void)[] = [];
  const { call, end: close } = latest(async () => {
    runs += 1;
    most = Math.max(most, ++now);
    await new Promise<void>((resolve) => ends.push(resolve));
    now -= 1;
  });
  const end = async () => {
    ends.shift()!();
    await new Promise((resolve) => setImmediate(resolve));
  };
  call();
  expect(runs).toBe(1);
  for (const _ of [1, 2, 3]) call();
  expect(runs).toBe(1);
  await end();
  expect(runs).toBe(2);
  await end();
  // Nobody called meanwhile, and whoever calls now is heard.
  expect(runs).toBe(2);
  call();
  expect(runs).toBe(3);
  // Who ends waits for what runs; what was called for meanwhile, and afterwards, is not begun.
  call();
  let closed = false;
  const closing = close().then(() => {
    closed = true;
  });
  expect(closed).toBe(false);
  await end();
  await closing;
  call();
  expect([runs, most, now]).toEqual([3, 1, 0]);
});
