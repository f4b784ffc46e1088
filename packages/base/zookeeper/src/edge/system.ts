import { randomUUID } from "node:crypto";
import type { Clock, Random } from "../types.ts";

/** The clock of this process. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer(ms, fn, options) {
    const timer = setTimeout(fn, ms);
    if (options?.background) timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

export const systemRandom: Random = {
  float: () => Math.random(),
  uuid: () => randomUUID(),
};
