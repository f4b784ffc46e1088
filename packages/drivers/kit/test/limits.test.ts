import { VirtualClock } from "@nodeyard/runtime";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DriverError, RateLimiter, SharedValue } from "../src/index.ts";

describe("RateLimiter", () => {
  test("starts are an interval apart, in order of arrival, the first at once", async () => {
    const clock = new VirtualClock();
    const limiter = new RateLimiter({ clock, intervalMs: 100 });
    const starts: [number, number][] = [];
    for (let caller = 0; caller < 4; caller++)
      void limiter.turn().then(() => starts.push([caller, clock.monotonic()]));
    await clock.advance(1_000);
    expect(starts).toEqual([
      [0, 0],
      [1, 100],
      [2, 200],
      [3, 300],
    ]);
    await limiter.turn();
    expect(clock.pending).toBe(0);
  });

  test("no interval, no wait", async () => {
    const limiter = new RateLimiter({ clock: new VirtualClock(), intervalMs: 0 });
    await Promise.all(Array.from({ length: 50 }, () => limiter.turn()));
  });

  test("a caller that gives up leaves its turn to the next, and a queue without callers has no timer", async () => {
    const clock = new VirtualClock();
    const limiter = new RateLimiter({ clock, intervalMs: 100 });
    await limiter.turn();
    const controller = new AbortController();
    const second = limiter.turn(controller.signal);
    let third = -1;
    void limiter.turn().then(() => {
      third = clock.monotonic();
    });
    controller.abort(new Error("never mind"));
    await expect(second).rejects.toThrow("never mind");
    await clock.advance(100);
    expect(third).toBe(100);
    const lone = new AbortController();
    const fourth = limiter.turn(lone.signal);
    lone.abort(new Error("nor this"));
    await expect(fourth).rejects.toThrow("nor this");
    expect([limiter.waiting, clock.pending]).toEqual([0, 0]);
  });

  test("a full queue says so", async () => {
    const limiter = new RateLimiter({ clock: new VirtualClock(), intervalMs: 100, waiting: 1 });
    await limiter.turn();
    expect(limiter.free).toBe(1);
    void limiter.turn();
    expect(limiter.free).toBe(0);
    await expect(limiter.turn()).rejects.toMatchObject({ code: "driver.transient" });
  });

  test("a refusal pauses and halves the speed, once for calls that were refused together; success brings it back", async () => {
    const clock = new VirtualClock();
    const limiter = new RateLimiter({ clock, intervalMs: 100 });
    await limiter.turn();
    limiter.refused(2_000);
    limiter.refused(1_000);
    expect(limiter.intervalMs).toBe(200);
    const starts: number[] = [];
    for (let call = 0; call < 3; call++) void limiter.turn().then(() => starts.push(clock.monotonic()));
    await clock.advance(10_000);
    expect(starts).toEqual([2_000, 2_200, 2_400]);
    for (let call = 0; call < 100; call++) limiter.accepted();
    expect(limiter.intervalMs).toBe(100);
  });

  test("a limit that is loosened is loosened at once, but for what the server asked on top of it", () => {
    const limiter = new RateLimiter({ clock: new VirtualClock(), intervalMs: 500 });
    limiter.configure(100);
    expect(limiter.intervalMs).toBe(100);
    limiter.refused(0);
    limiter.configure(20);
    expect(limiter.intervalMs).toBe(200);
    limiter.configure(1_000);
    expect(limiter.intervalMs).toBe(1_000);
  });

  test("a server without a configured limit limits itself, and recovers", async () => {
    const clock = new VirtualClock();
    const limiter = new RateLimiter({ clock, intervalMs: 0 });
    await limiter.turn();
    limiter.refused(0);
    expect(limiter.intervalMs).toBe(50);
    for (let call = 0; call < 100; call++) limiter.accepted();
    expect(limiter.intervalMs).toBe(0);
  });

  test("calls run in the order of their arrival; timers that fire late do not slow the rate down", async () => {
    const clock = new VirtualClock();
    const late = lateBy(clock, 7);
    const limiter = new RateLimiter({ clock: late, intervalMs: 100 });
    const order: string[] = [];
    await limiter.turn();
    for (let call = 0; call < 99; call++) void limiter.turn().then(() => order.push("last"));
    void limiter.turn(undefined, { first: true }).then(() => order.push("first"));
    await clock.advance(100 * 100 + 50);
    expect(order[0]).toBe("first");
    expect(order).toHaveLength(100);
  });

  test("whatever comes when, no two starts are closer than the interval", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 250 }), { maxLength: 30 }), async (gaps) => {
        const clock = new VirtualClock();
        const limiter = new RateLimiter({ clock, intervalMs: 100 });
        const starts: number[] = [];
        for (const gap of gaps) {
          void limiter.turn().then(() => starts.push(clock.monotonic()));
          await clock.advance(gap);
        }
        await clock.advance(100 * gaps.length);
        expect(starts).toHaveLength(gaps.length);
        for (const [index, start] of starts.slice(1).entries())
          expect(start - starts[index]!).toBeGreaterThanOrEqual(100);
      }),
      { numRuns: 50 },
    );
  });
});

describe("SharedValue", () => {
  function counted(freshMs: number, staleMs: number) {
    const clock = new VirtualClock();
    const loads: PromiseWithResolvers<number>[] = [];
    const load = () => {
      const next = Promise.withResolvers<number>();
      loads.push(next);
      return next.promise;
    };
    const value = new SharedValue({ clock, load, what: "server list", freshMs, staleMs, loadMs: 5_000 });
    return { clock, loads, value };
  }

  test("one load answers all callers that come meanwhile or while it is fresh", async () => {
    const { clock, loads, value } = counted(100, 1_000);
    const both = [value.get(), value.get()];
    loads[0]!.resolve(1);
    expect(await Promise.all(both)).toEqual([1, 1]);
    await clock.advance(100);
    expect(await value.get()).toBe(1);
    expect(loads).toHaveLength(1);
  });

  test("a stale value is served while the next is loaded; one that is too old is waited for", async () => {
    const { clock, loads, value } = counted(100, 1_000);
    const first = value.get();
    loads[0]!.resolve(1);
    await first;
    await clock.advance(500);
    expect(await value.get()).toBe(1);
    loads[1]!.resolve(2);
    await clock.advance(0);
    expect(await value.get()).toBe(1 + 1);
    await clock.advance(1_001 + 500);
    const late = value.get();
    loads[2]!.reject(new Error("cloud is down"));
    await expect(late).rejects.toMatchObject({ kind: "fatal", message: "server list: cloud is down" });
  });

  test("a load that began before an invalidation does not answer later callers", async () => {
    const { loads, value } = counted(10_000, 10_000);
    const before = value.get();
    value.invalidate();
    const after = value.get();
    expect(loads).toHaveLength(2);
    loads[0]!.resolve(1);
    loads[1]!.resolve(2);
    expect([await before, await after, await value.get()]).toEqual([1, 2, 2]);
  });

  test("a caller's abort ends its waiting only; a load past its time is a time-out; close ends all", async () => {
    const { clock, loads, value } = counted(0, 0);
    const controller = new AbortController();
    const [mine, other] = [value.get(controller.signal), value.get()];
    controller.abort(new Error("mine"));
    await expect(mine).rejects.toThrow("mine");
    const outcome = other.catch((error) => error);
    await clock.advance(5_000);
    expect(await outcome).toMatchObject({ code: "driver.timeout" });
    const last = value.get().catch((error) => error);
    value.close();
    expect(await last).toBeInstanceOf(DriverError);
    await expect(value.get()).rejects.toBeInstanceOf(DriverError);
    expect(loads).toHaveLength(2);
    expect(clock.pending).toBe(0);
  });
});

/** A clock whose timers come later than asked for, as those of a busy machine do. */
function lateBy(clock: VirtualClock, ms: number) {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    setTimer: (after: number, fn: () => void) => clock.setTimer(after + ms, fn),
  };
}
