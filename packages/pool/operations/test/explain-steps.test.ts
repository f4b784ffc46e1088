import type { PastEvent } from "@nodeyard/telemetry";
import { expect, test } from "vitest";
import { lifeOf } from "../src/explain/steps.ts";

const node = "0000000001";
const event = (name: string, facts: PastEvent["facts"] = {}): PastEvent => ({
  at: 0,
  event: name,
  request: null,
  node,
  facts,
});
const done = (of: string, step: string, began: number, ms: number, attempt = 1) =>
  event("node.step", { of, attempt, step, began, ms });
const brief = (steps: ReturnType<typeof lifeOf>) =>
  steps.map(({ of, step, began, seconds }) => [of, step, Date.parse(began!), seconds && seconds * 1_000]);

test("steps in order; the time between ready and deletion is a step, too", () => {
  const events = [
    done("launch", "boot", 2_000, 3_000),
    done("launch", "create", 0, 2_000),
    event("node.ready"),
    done("delete", "remove", 60_000, 500),
    event("node.deleted"),
  ];
  expect(brief(lifeOf(events, []))).toEqual([
    ["launch", "create", 0, 2_000],
    ["launch", "boot", 2_000, 3_000],
    ["life", "there to be used", 5_000, 55_000],
    ["delete", "remove", 60_000, 500],
  ]);
});

test("a step under way is listed once, whether or not its end was recorded meanwhile", () => {
  const now = { node, of: "launch", attempt: 1, step: "boot", began: 2_000 };
  expect(brief(lifeOf([done("launch", "create", 0, 2_000)], [now]))).toEqual([
    ["launch", "create", 0, 2_000],
    ["launch", "boot", 2_000, null],
  ]);
  expect(brief(lifeOf([done("launch", "boot", 2_000, 10)], [now]))).toEqual([["launch", "boot", 2_000, 10]]);
});

test("the service of a ready node lasts until now; events that cannot be read give no steps", () => {
  expect(brief(lifeOf([done("launch", "create", 0, 2_000), event("node.ready")], []))).toEqual([
    ["launch", "create", 0, 2_000],
    ["life", "there to be used", 2_000, null],
  ]);
  expect(lifeOf([event("node.step", { of: 1 }), event("node.ready"), event("node.step")], [])).toEqual([]);
});
