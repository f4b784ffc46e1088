import { randomFillSync, randomUUID } from "node:crypto";
import type { Clock } from "../clock.ts";
import type { Random } from "../random.ts";

/** Longest delay that Node's timers support. For a longer one Node uses 1 ms, so it is split. */
const LONGEST_MS = 2 ** 31 - 1;

/** The clock of the operating system. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer(ms, fn, options) {
    const set = (left: number): NodeJS.Timeout => {
      const handle =
        left > LONGEST_MS
          ? setTimeout(() => {
              current = set(left - LONGEST_MS);
            }, LONGEST_MS)
          : setTimeout(fn, left);
      return options?.background ? handle.unref() : handle;
    };
    let current = set(ms);
    return { cancel: () => clearTimeout(current) };
  },
};

const word = new Uint32Array(1);

/** The random numbers of the operating system. */
export const systemRandom: Random = {
  float: () => randomFillSync(word)[0]! / 4_294_967_296,
  uuid: () => randomUUID(),
};
