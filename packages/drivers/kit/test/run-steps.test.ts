import { sleep, VirtualClock } from "@nodeyard/runtime";
import { beforeEach, describe, expect, test } from "vitest";
import { DriverError, type ExternalId, runSteps, type Step, type StepContext } from "../src/index.ts";

type Steps = (context: StepContext) => AsyncGenerator<Step, string, void>;

const never = new AbortController().signal;

describe("runSteps", () => {
  let clock: VirtualClock;
  let saved: ExternalId[];
  beforeEach(() => {
    clock = new VirtualClock();
    saved = [];
  });

  const save = async (id: ExternalId) => void saved.push(id);
  const run = (start: Steps, more: Partial<Parameters<typeof runSteps>[1]> = {}) =>
    runSteps(start, { clock, signal: never, externalId: null, save, ...more });

  test("stores a checkpoint before the driver goes on, tells each step, and leaves no timer", async () => {
    const order: string[] = [];
    const result = await run(
      async function* () {
        yield { step: "server", deadlineMs: 10 };
        order.push("server");
        yield { step: "wait", deadlineMs: 10, save: { externalId: "id-1" } };
        order.push("wait");
        return "up";
      },
      {
        save: async (id) => {
          await Promise.resolve();
          order.push(`saved ${id}`);
        },
        onStep: ({ step }) => void order.push(`told ${step}`),
      },
    );
    expect(result).toBe("up");
    expect(order).toEqual(["told server", "server", "told wait", "saved id-1", "wait"]);
    expect(clock.pending).toBe(0);
  });

  describe("what a step that only looks stores, for a caller that stores the id of the result", () => {
    const steps = (waitMs: number): Steps =>
      async function* ({ signal }) {
        yield { step: "wait", deadlineMs: 1_000, save: { externalId: "id-1" }, onlyLooks: true };
        if (waitMs > 0) await sleep(clock, waitMs, signal);
        saved.push("waited");
        if (waitMs < 0) yield { step: "address", deadlineMs: 10 };
        saved.push("ended");
        return "up";
      };

    test("is not stored where the driver returns at once", async () => {
      expect(await run(steps(0), { savesResult: true })).toBe("up");
      expect(saved).toEqual(["waited", "ended"]);
      expect(clock.pending).toBe(0);
    });

    test("is stored while it waits, and before another step", async () => {
      const work = run(steps(500), { savesResult: true });
      await clock.advance(10);
      expect(saved).toEqual(["id-1"]);
      await clock.advance(500);
      expect(await work).toBe("up");
      saved = [];
      await run(steps(-1), { savesResult: true });
      expect(saved).toEqual(["waited", "id-1", "ended"]);
    });
  });

  test("hands over what was stored before", async () => {
    const start: Steps = async function* ({ externalId }) {
      yield { step: "find", deadlineMs: 10 };
      return String(externalId);
    };
    expect(await run(start, { externalId: "old" })).toBe("old");
  });

  test("a step past its deadline is aborted and ends as a time-out that names it; finally blocks run", async () => {
    let cleaned = false;
    const work = run(async function* ({ signal }) {
      try {
        yield { step: "boot", deadlineMs: 500 };
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      } finally {
        cleaned = true;
      }
      return "";
    });
    const outcome = work.catch((error) => error);
    await clock.advance(499);
    expect(cleaned).toBe(false);
    await clock.advance(1);
    expect(await outcome).toMatchObject({
      code: "driver.timeout",
      message: "step boot took longer than 500 ms",
    });
    expect(cleaned).toBe(true);
    expect(clock.pending).toBe(0);
  });

  test("a driver that ignores the abort is left behind after a second", async () => {
    const work = run(async function* () {
      yield { step: "deaf", deadlineMs: 10 };
      await new Promise(() => {});
      return "";
    });
    const outcome = work.catch((error) => error);
    await clock.advance(10);
    await clock.advance(999);
    expect(clock.pending).toBe(1);
    await clock.advance(1);
    expect(await outcome).toBeInstanceOf(DriverError);
    expect(clock.pending).toBe(0);
  });

  test("the time that save takes does not count against a deadline", async () => {
    const gate = Promise.withResolvers<void>();
    const work = run(
      async function* () {
        yield { step: "wait", deadlineMs: 10, save: { externalId: "x" } };
        return "up";
      },
      { save: () => gate.promise },
    );
    await clock.advance(10_000);
    gate.resolve();
    expect(await work).toBe("up");
  });

  test("the caller's abort ends the run with the caller's reason", async () => {
    const controller = new AbortController();
    const work = run(
      async function* ({ signal }) {
        yield { step: "wait", deadlineMs: 1_000 };
        await new Promise((_, reject) =>
          signal.addEventListener("abort", () => reject(new Error("wrapped by a library"))),
        );
        return "";
      },
      { signal: controller.signal },
    );
    const outcome = work.catch((error) => error);
    await clock.advance(0);
    const reason = new Error("session lost");
    controller.abort(reason);
    expect(await outcome).toBe(reason);
    await expect(
      run(
        async function* () {
          yield { step: "find", deadlineMs: 10 };
          return "";
        },
        { signal: AbortSignal.abort(reason) },
      ),
    ).rejects.toBe(reason);
  });

  test("what save throws comes back unchanged, the generator is closed, and the driver's signal aborts", async () => {
    const lost = new Error("the lock is gone");
    let seen: AbortSignal | undefined;
    let cleaned = false;
    const work = run(
      async function* ({ signal }) {
        seen = signal;
        try {
          yield { step: "wait", deadlineMs: 10, save: { externalId: "x" } };
        } finally {
          cleaned = true;
        }
        return "";
      },
      { save: () => Promise.reject(lost) },
    );
    await expect(work).rejects.toBe(lost);
    expect([cleaned, seen?.aborted]).toEqual([true, true]);
    expect(clock.pending).toBe(0);
  });

  test("a typed error passes as it is, any other becomes fatal once, with its cause", async () => {
    const quota = new DriverError("quota", "full");
    await expect(
      run(async function* () {
        yield { step: "server", deadlineMs: 10 };
        throw quota;
      }),
    ).rejects.toBe(quota);
    const bug = new TypeError("x is not a function");
    await expect(
      run(async function* () {
        yield { step: "server", deadlineMs: 10 };
        throw bug;
      }),
    ).rejects.toMatchObject({ kind: "fatal", message: "step server: x is not a function", cause: bug });
  });
});
