import { expect, test } from "vitest";
import { inParallel } from "../src/index.ts";

test("what has arrived is reported as it arrives, however fast sending is, so that a crash costs little", async () => {
  async function* items() {
    for (let item = 0; item < 40; item++) {
      await new Promise((resolve) => setImmediate(resolve));
      yield item;
    }
  }
  const reported: number[] = [];
  for await (const arrived of inParallel(items(), 16, async () => {})) reported.push(arrived);
  expect(reported[0]).toBeLessThan(4);
  expect(reported.at(-1)).toBeGreaterThan(30);
  expect(reported).toEqual([...reported].sort((a, b) => a - b));
});
