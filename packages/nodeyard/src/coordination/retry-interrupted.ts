import { backoff, type Clock, type Random, sleep } from "@nodeyard/runtime";
import { isInterrupted } from "./interrupted.ts";

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
