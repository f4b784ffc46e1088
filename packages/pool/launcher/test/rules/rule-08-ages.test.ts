import { VirtualClock } from "@nodeyard/runtime";
import type { Tree } from "@nodeyard/tree";
import { describe, expect, test } from "vitest";
import { policy, pool, SchedulerFixture } from "../../../scheduler/test/world.ts";
import { AgeClock } from "../../src/age-clock.ts";

const DAY = 86_400_000;

function ages() {
  const clock = new VirtualClock(1_000_000);
  let offset = 0;
  const tree = { clockOffset: () => offset } as unknown as Tree;
  const it = new AgeClock({ clock, tree });
  const learn = (ms: number) => {
    offset = ms;
  };
  return { clock, it, learn };
}

describe("rule 8: tree time for ages", () => {
  test("follows small steps, and runs on by the monotonic clock over a jump, whichever way", async () => {
    for (const jump of [DAY, -DAY, 31_000]) {
      const { clock, it } = ages();
      clock.jump(20_000);
      expect(it.now()).toBe(1_020_000);
      expect(it.trusted).toBe(true);
      clock.jump(jump);
      await clock.advance(5_000);
      expect(it.now()).toBe(1_025_000);
      expect(it.trusted).toBe(false);
    }
  });

  test("is the new one when three sweeps agree on it, not before, and not when they differ", () => {
    const { clock, it, learn } = ages();
    clock.jump(DAY);
    it.sweep();
    it.sweep();
    expect(it.trusted).toBe(false);
    // The tree says something else now: what was agreed on counts no more.
    learn(DAY);
    it.sweep();
    expect(it.trusted).toBe(false);
    it.sweep();
    expect(it.trusted).toBe(false);
    it.sweep();
    expect(it.trusted).toBe(true);
    expect(it.now()).toBe(1_000_000 + 2 * DAY);
  });

  test("an offset that is learnt for the first time is no jump", () => {
    const { it, learn } = ages();
    learn(DAY);
    it.start();
    expect(it.trusted).toBe(true);
    expect(it.now()).toBe(1_000_000 + DAY);
  });

  test("an offset that was measured while our clock was set is trusted after three sweeps", () => {
    const { clock, it, learn } = ages();
    learn(0);
    clock.jump(DAY);
    it.start();
    expect(it.trusted).toBe(false);
    // A write of the first sweep tells by how much.
    learn(-DAY);
    for (let sweep = 0; sweep < 2; sweep++) it.sweep();
    expect(it.trusted).toBe(false);
    it.sweep();
    expect(it.trusted).toBe(true);
    expect(it.now()).toBe(1_000_000);
  });
});

test("rule 8: while ages are not trusted nothing is deleted by age, and all of it is looked at again after", () => {
  const labels = new Map([["small", { name: "small", minReady: 0, maxReadyAgeMs: 1_000 }]]);
  const fixture = new SchedulerFixture(policy([pool()], { labels }));
  fixture.node("0000000001");
  fixture.node("0000000002", { state: "hold", hold_expiration: 1 });
  fixture.node("0000000003", { state: "init", allocated_to: "100-0000000009" });
  fixture.tell({ type: "ages", trusted: false });
  expect(fixture.wait(DAY)).toEqual([]);
  const deleted = fixture.tell({ type: "ages", trusted: true }).filter(({ type }) => type === "delete");
  expect(deleted.map((action) => "node" in action && action.node).sort()).toEqual([
    "0000000001",
    "0000000002",
    "0000000003",
  ]);
});

test("rule 8: a state that a client with a clock that is days off sets before our eyes lasts its time", () => {
  for (const off of [-2 * DAY, 2 * DAY]) {
    const fixture = new SchedulerFixture(policy([pool()]));
    fixture.now = 10 * DAY;
    fixture.node("0000000001", { state: "in-use", state_time: 864_000 }, ["c"]);
    const held = { state: "hold", state_time: (fixture.now + off) / 1_000, hold_expiration: 300 };
    expect(fixture.node("0000000001", held)).toEqual([]);
    expect(fixture.wait(299_000)).toEqual([]);
    expect(fixture.wait(1_000)).toMatchObject([{ type: "delete", node: "0000000001" }]);
  }
});
