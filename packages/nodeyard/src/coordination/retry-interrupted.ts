import { backoff, type Clock, type Random, sleep } from "@nodeyard/runtime";
import { isInterrupted } from "./interrupted.ts";

const ATTEMPTS = 12;

/**
 * Repeats work that may be repeated (it finds what it already did) while the tree loses its replies; any other error, and the
 * last of many, is passed on.
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
