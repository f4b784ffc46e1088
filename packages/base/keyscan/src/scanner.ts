import { backoff, deadline, Gate, type Random, sleep } from "@nodeyard/runtime";
import type { Scanner, ScanResult, ScanTarget } from "./contract.ts";
import { describe, isFinal, ScanQueueFullError, ScanTimeoutError } from "./errors.ts";
import { CONNECTION_MS, type Handles, probe } from "./probe.ts";

/** First and longest pause between two tries, milliseconds. */
const FIRST_RETRY_MS = 200;
const LONGEST_RETRY_MS = 2_000;
/** Least time limit for the first bytes, milliseconds (`patience`). */
const LEAST_PATIENCE_MS = 1_000;

/** Limits of a scanner. */
export interface ScannerLimits {
  /** Scans at once. Further ones wait, and the wait does not count against their time limit. */
  readonly active: number;
  /** Scans that may wait. Further ones are rejected with `keyscan.queue_full`. */
  readonly waiting: number;
}

/** Makes a scanner from explicit handles. `random` spreads retries, so that many scans of one host do not retry at the same moment. */
export function scannerOver(handles: Handles, random: Random, { active, waiting }: ScannerLimits): Scanner {
  const gate = new Gate(active, (waits) => {
    if (waits >= waiting) throw new ScanQueueFullError(`${waits} scans wait already; try again later`);
  });
  return { scan: (target) => gate.run(() => scan(target, handles, random), target.signal) };
}

/** Tries until the target answers, its time is up, or an error is final. Rejects with ScanTimeoutError, whose cause is the last failure. */
async function scan(target: ScanTarget, handles: Handles, random: Random): Promise<ScanResult> {
  let last: unknown;
  const where = `${target.host}:${target.port}`;
  const late = () => new ScanTimeoutError(`${where} was not ready within ${target.timeoutMs} ms`);
  const began = handles.clock.monotonic();
  using bound = deadline(handles.clock, target.timeoutMs, late, target.signal);
  try {
    for (let attempt = 0; ; attempt++) {
      try {
        return await probe(target, handles, patience(handles.clock.monotonic() - began), bound.signal);
      } catch (error) {
        if (bound.signal.aborted || isFinal(error)) throw error;
        last = error;
      }
      await sleep(handles.clock, backoff(random, attempt, FIRST_RETRY_MS, LONGEST_RETRY_MS), bound.signal);
    }
  } catch (error) {
    target.signal?.throwIfAborted();
    if (!bound.signal.aborted) throw error;
    const why = last === undefined ? "no answer" : describe(last);
    throw new ScanTimeoutError(`${where} was not ready within ${target.timeoutMs} ms: ${why}`, {
      cause: last,
    });
  }
}

/**
 * Time limit for the first bytes, after `waitedMs` of the scan. A forwarded port or a proxy may accept the connection before the server
 * listens, and then stay silent for ever. So the limit starts at a second and grows with the scan: such silence costs at most a quarter
 * of the boot time, and a slow server gets its full ten seconds in the end.
 */
function patience(waitedMs: number): number {
  return Math.min(CONNECTION_MS, Math.max(LEAST_PATIENCE_MS, waitedMs / 4));
}
