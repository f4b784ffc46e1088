import { backoff, type Clock, type Random, sleep } from "@nodeyard/runtime";
import { TreeError } from "@nodeyard/tree";

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

/**
 * Repeats interrupted work with back-off. The work must be repeatable: it finds its earlier results. Other errors, and the last
 * interruption after all tries, are passed on.
 */
export async function retryInterrupted<T>(
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  work: () => Promise<T>,
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!isInterrupted(error) || attempt >= ATTEMPTS) throw error;
      await sleep(clock, backoff(random, attempt, 50, 5_000));
    }
  }
}
