import { describe, expect, test } from "vitest";
import { backoff, deadline, NodeyardError, seededRandom, sleep, VirtualClock } from "../src/index.ts";

describe("VirtualClock", () => {
  test("timers fire in order of time, then of creation, and promise chains run between them", async () => {
    const clock = new VirtualClock();
    const seen: string[] = [];
    clock.setTimer(20, () => seen.push("late"));
    clock.setTimer(10, () => void Promise.resolve().then(() => seen.push("chain of first")));
    clock.setTimer(10, () => seen.push("second"));
    await clock.advance(15);
    expect(seen).toEqual(["chain of first", "second"]);
    await clock.advance(5);
    expect(seen).toEqual(["chain of first", "second", "late"]);
    expect(clock.monotonic()).toBe(20);
  });

  test("what is cancelled never fires, is not pending, and leaves the order of the others alone", async () => {
    const clock = new VirtualClock();
    const seen: number[] = [];
    const timers = Array.from({ length: 1_000 }, (_, at) => clock.setTimer(1_000 - at, () => seen.push(at)));
    for (const [at, timer] of timers.entries()) if (at % 100 !== 0) timer.cancel();
    for (const timer of timers.slice(1, 50)) timer.cancel();
    expect(clock.pending).toBe(10);
    await clock.advance(2_000);
    expect(seen).toEqual([900, 800, 700, 600, 500, 400, 300, 200, 100, 0]);
    timers[0]?.cancel();
    expect(clock.pending).toBe(0);
  });

  test("a timer that is set or cancelled by another one counts at once", async () => {
    const clock = new VirtualClock();
    const seen: string[] = [];
    clock.setTimer(5, () => {
      late.cancel();
      clock.setTimer(0, () => seen.push("now"));
    });
    const late = clock.setTimer(5, () => seen.push("cancelled"));
    await clock.advance(5);
    expect(seen).toEqual(["now"]);
  });

  test("a loop of 0 ms timers is an error that names who sets them; as many over time are none", async () => {
    const clock = new VirtualClock(0, 1_000);
    let rounds = 0;
    const forEver = async (): Promise<void> => {
      for (;;) {
        rounds++;
        await sleep(clock, 0);
      }
    };
    void forEver();
    await expect(clock.advance(5)).rejects.toMatchObject({
      code: "runtime.time_stands_still",
      message: expect.stringMatching(/1000 timers fired at 0 ms .*\n {2}100 x .*forEver/s),
    });
    expect(rounds).toBeLessThan(1_100);
    const patient = new VirtualClock(0, 1_000);
    let fired = 0;
    const again = () => void patient.setTimer(fired++ % 500 === 499 ? 1 : 0, again);
    again();
    await patient.advance(100);
    expect(fired).toBeGreaterThan(40_000);
  });

  test("a wall clock jump leaves the monotonic clock alone", () => {
    const clock = new VirtualClock(1000);
    clock.jump(-500);
    expect([clock.now(), clock.monotonic()]).toEqual([500, 0]);
  });
});

describe("sleep and deadline", () => {
  test("an abort ends a sleep with the signal's reason and leaves no timer", async () => {
    const clock = new VirtualClock();
    const controller = new AbortController();
    const slept = sleep(clock, 1000, controller.signal);
    controller.abort(new Error("stop"));
    await expect(slept).rejects.toThrow("stop");
    expect(clock.pending).toBe(0);
  });

  test("a deadline aborts with its reason; a cancelled one never does", async () => {
    const clock = new VirtualClock();
    const one = deadline(clock, 10, () => new NodeyardError("late", "took too long"));
    const two = deadline(clock, 10, () => new Error("never"));
    two.cancel();
    await clock.advance(10);
    expect(one.signal.reason).toMatchObject({ code: "late", name: "NodeyardError" });
    expect(two.signal.aborted).toBe(false);
  });
});

describe("chance", () => {
  test("one seed gives one sequence, well-formed UUIDs included", () => {
    const [a, b] = [seededRandom(7), seededRandom(7)];
    expect([a.float(), a.uuid()]).toEqual([b.float(), b.uuid()]);
    expect(a.uuid()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  test("back-off grows and stays under its cap", () => {
    const random = seededRandom(1);
    for (let attempt = 0; attempt < 50; attempt++) {
      const ms = backoff(random, attempt, 100, 1000);
      expect(ms).toBeGreaterThanOrEqual(60);
      expect(ms).toBeLessThanOrEqual(1400);
    }
  });
});
