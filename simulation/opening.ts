import { sleep } from "@nodeyard/runtime";
import type { Scene } from "./scene.ts";

/** Requests that fill the pool of what can never be made. */
const FILLERS = 2;
/** The pool is full by then, milliseconds. */
const FULL_MS = 1_000;

/**
 * While one launcher is alone: a request waits for a place in the only pool that could make what it asks for, so that all others
 * have declined before that pool tries in vain. Resolves when nothing of it is open.
 */
export async function openingOf({ zuul, clock }: Scene): Promise<void> {
  const fillers = Array.from({ length: FILLERS }, () => zuul.live(["rare", "rare"]));
  await sleep(clock, FULL_MS);
  await Promise.all([...fillers, zuul.live(["doomed"])]);
}
