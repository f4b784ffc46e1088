import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemClock } from "../src/index.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** 40 days: more than the 24.8 that a timer of Node can be set for. */
const LONG_MS = 40 * 24 * 3_600_000;

test("a timer of many days fires in its time, not at once", () => {
  const fired = vi.fn();
  systemClock.setTimer(LONG_MS, fired);
  vi.advanceTimersByTime(LONG_MS - 1);
  expect(fired).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(fired).toHaveBeenCalledOnce();
});

test("it can be cancelled at any time", () => {
  const fired = vi.fn();
  const timer = systemClock.setTimer(LONG_MS, fired, { background: true });
  vi.advanceTimersByTime(LONG_MS - 1);
  timer.cancel();
  expect(vi.getTimerCount()).toBe(0);
});
