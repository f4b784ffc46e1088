/** A pending call. `cancel` has no effect after the call was made or cancelled. */
export interface Timer {
  cancel(): void;
}

/** The clock of a process. All figures are milliseconds. Simulations replace it by a `VirtualClock`. */
export interface Clock {
  /** Wall time since the Unix epoch. It may jump; use it for records, not for waits. */
  now(): number;
  /** Time since an arbitrary start. It never goes back. */
  monotonic(): number;
  /** Calls `fn` once after `ms`. A `background` timer does not keep the process alive. */
  setTimer(ms: number, fn: () => void, options?: { readonly background?: boolean }): Timer;
}

/** Resolves after `ms`; rejects with the signal's reason when `signal` aborts first. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = clock.setTimer(ms, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** The result of shared `work`, or the signal's reason when it aborts first. The work continues for other callers. */
export function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
    if (signal.aborted) onAbort();
  });
}

/** A time limit. It ends by `cancel`, or with the block that has it in a `using`. */
export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
  cancel(): void;
}

/** A signal that aborts with `reason()` after `ms`, or with the parent's reason when the parent aborts. */
export function deadline(clock: Clock, ms: number, reason: () => Error, parent?: AbortSignal): Deadline {
  const controller = new AbortController();
  const timer = clock.setTimer(ms, () => end(reason()));
  const onParent = () => end(parent?.reason);
  function end(why: unknown): void {
    cancel();
    controller.abort(why);
  }
  function cancel(): void {
    timer.cancel();
    parent?.removeEventListener("abort", onParent);
  }
  if (parent?.aborted) end(parent.reason);
  else parent?.addEventListener("abort", onParent, { once: true });
  return { signal: controller.signal, cancel, [Symbol.dispose]: cancel };
}

/** Waits until `work` settles, but not longer than `ms`. Returns whether it settled; otherwise its result is ignored. */
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
