import type { ScanClock } from "./contract.ts";

/** A signal that aborts with `reason()` after `ms`, or as the parent does. `end` frees the timer. */
export function limit(
  clock: ScanClock,
  ms: number,
  reason: () => Error,
  parent?: AbortSignal,
): { readonly signal: AbortSignal; end(): void } {
  const controller = new AbortController();
  const timer = clock.setTimer(ms, () => stop(reason()));
  const onParent = () => stop(parent?.reason);
  function end(): void {
    timer.cancel();
    parent?.removeEventListener("abort", onParent);
  }
  function stop(why: unknown): void {
    end();
    controller.abort(why);
  }
  if (parent?.aborted) stop(parent.reason);
  else parent?.addEventListener("abort", onParent, { once: true });
  return { signal: controller.signal, end };
}

/** Resolves after `ms`; rejects with the signal's reason. */
export function pause(clock: ScanClock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => {
      timer.cancel();
      reject(signal.reason);
    };
    const timer = clock.setTimer(ms, () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    signal.addEventListener("abort", onAbort, { once: true });
  });
}
