import { setTimeout as sleep } from "node:timers/promises";
import { TreeError } from "@nodeyard/tree";
import { patient } from "../patience.ts";

const LIMIT_MS = patient(60_000);
const PAUSE_MS = 50;
const BROKEN_OFF: ReadonlySet<string> = new Set(["tree.connection_lost", "tree.call_ended"]);

/** Repeats idempotent work while the other side is down or restarting. */
export async function patiently<T>(work: () => Promise<T>): Promise<T> {
  const limit = performance.now() + LIMIT_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const brokenOff = error instanceof TreeError && BROKEN_OFF.has(error.code);
      if (!brokenOff || performance.now() > limit) throw error;
      await sleep(PAUSE_MS);
    }
  }
}

/** `work`'s answer, or undefined where the znode is not there. */
export async function orNothing<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await patiently(work);
  } catch (error) {
    if (error instanceof TreeError && error.code === "tree.no_node") return undefined;
    throw error;
  }
}

/** Waits until `look` returns true. Rejects with the text of `describe` after `limitMs`. */
export async function until(
  look: () => boolean | Promise<boolean>,
  limitMs: number,
  describe: () => string | Promise<string>,
): Promise<void> {
  const limit = performance.now() + patient(limitMs);
  while (!(await look())) {
    if (performance.now() > limit) throw new Error(`not within ${patient(limitMs)} ms: ${await describe()}`);
    await sleep(PAUSE_MS);
  }
}
