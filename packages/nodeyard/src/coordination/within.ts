import type { Clock } from "@nodeyard/runtime";

/** Waits for `work` to settle, but not longer than `ms`. True when it settled. What is still going on goes on unheard. */
export function settledWithin(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = clock.setTimer(ms, () => resolve(false));
    const end = () => {
      timer.cancel();
      resolve(true);
    };
    work.then(end, end);
  });
}

/** The outcome of `work`, or a rejection with `late()` after `ms`; a value that comes too late goes to `discard`. */
export function inTime<T>(
  clock: Clock,
  ms: number,
  work: Promise<T>,
  late: () => Error,
  discard: (value: T) => void = () => {},
): Promise<T> {
  return new Promise((resolve, reject) => {
    let over = false;
    const timer = clock.setTimer(ms, () => {
      over = true;
      reject(late());
    });
    work.then(
      (value) => {
        timer.cancel();
        if (over) discard(value);
        else resolve(value);
      },
      (error: unknown) => {
        timer.cancel();
        reject(error as Error);
      },
    );
  });
}
