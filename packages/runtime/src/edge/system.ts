import { randomFillSync, randomUUID } from "node:crypto";
import type { Clock } from "../clock.ts";
import type { Random } from "../random.ts";

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer(ms, fn, options) {
    const handle = setTimeout(fn, ms);
    if (options?.background) handle.unref();
    return { cancel: () => clearTimeout(handle) };
  },
};

const word = new Uint32Array(1);

/** The machine's own entropy. */
export const systemRandom: Random = {
  float: () => randomFillSync(word)[0]! / 4_294_967_296,
  uuid: () => randomUUID(),
};
