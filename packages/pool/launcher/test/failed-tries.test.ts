import { expect, test } from "vitest";
import { FailedTries } from "../src/failed-tries.ts";

test("a row has the time of its first failure, and ends when a try succeeds or its key goes", () => {
  const tries = new FailedTries();
  expect(tries.add("a", 1)).toEqual({ failed: 1, since: 1 });
  expect(tries.add("a", 5)).toEqual({ failed: 2, since: 1 });
  tries.add("b", 6);
  tries.end("a");
  expect(tries.add("a", 7)).toEqual({ failed: 1, since: 7 });
  tries.keep((key) => key === "a");
  expect([tries.count("a"), tries.count("b")]).toEqual([1, 0]);
});
