import { decodeFailures, type FailureRecord, failurePath, offeringKey } from "@nodeyard/model";
import { seededRandom } from "@nodeyard/runtime";
import { failureRule } from "@nodeyard/scheduler";
import { memoryLog } from "@nodeyard/telemetry";
import { expect, test } from "vitest";
import { FailureStore } from "../src/failure-store.ts";
import { World } from "./rules/world.ts";

/** So many that a few writes in a row are not enough for the last of them. */
const LAUNCHERS = 20;
const key = offeringKey({ provider: "cloud", az: null, type: "small" });
const none: FailureRecord = {
  kind: "failed",
  error: "",
  failures: 0,
  since: 0,
  spent: { level: 0, at: 0 },
  pause: { why: "failures", opens: 1, until: 1 },
};

test("launchers that count a failure in one record at the same moment are all counted", async () => {
  const world = new World();
  const log = memoryLog();
  const ages = { stored: (_: string, instant: number) => instant, treeTimeOf: (instant: number) => instant };
  let done = 0;
  const writes = Array.from({ length: LAUNCHERS }, (_, index) => {
    const tree = world.cluster.connect({ name: `launcher-${index}`, sessionTimeoutMs: 10_000 });
    // None has seen the record yet.
    const view = { own: new Map() };
    const handles = { tree, view, ages, log, clock: world.clock, random: seededRandom(index) };
    const store = new FailureStore(
      handles as unknown as ConstructorParameters<typeof FailureStore>[0],
      failureRule,
    );
    return store.write(key, (found = none) => ({
      record: { ...found, failures: found.failures + 1 },
      probe: false,
      done: () => done++,
    }));
  });
  await world.settle(Promise.all(writes));
  expect(decodeFailures(key, world.cluster.znodes.data(failurePath(key))!).failures).toBe(LAUNCHERS);
  expect([done, log.lines]).toEqual([LAUNCHERS, []]);
});
