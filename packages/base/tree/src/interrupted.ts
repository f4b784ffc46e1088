import { backoff, type Clock, type Random, sleep } from "@nodeyard/runtime";
import { TreeError } from "./errors.ts";

const CODES: ReadonlySet<string> = new Set([
  "tree.connection_lost",
  "tree.session_expired",
  "tree.call_ended",
]);

/** Whether a call was interrupted without an answer of the tree. A read, or work that finds its earlier results, may be repeated. */
export function isInterrupted(error: unknown): error is TreeError {
  return error instanceof TreeError && CODES.has(error.code);
}

/** Retries, whose pauses are half a minute together. */
const ATTEMPTS = 12;

/** What the pauses between retries need. */
type PauseHandles = { readonly clock: Clock; readonly random: Random };

/**
 * Repeats work with back-off while it fails with an error that `repeats` accepts. Other errors, and the last one after all tries, are
 * passed on. The pauses are drawn by chance, so that processes that met at one record do not meet there again.
 */
export async function retry<T>(
  { clock, random }: PauseHandles,
  repeats: (error: unknown) => boolean,
  work: () => Promise<T>,
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!repeats(error) || attempt >= ATTEMPTS) throw error;
      await sleep(clock, backoff(random, attempt, 50, 5_000));
    }
  }
}

/** Repeats interrupted work, as `retry` does. The work must be repeatable: it finds its earlier results. */
export function retryInterrupted<T>(handles: PauseHandles, work: () => Promise<T>): Promise<T> {
  return retry(handles, isInterrupted, work);
}
