import { abortable } from "@nodeyard/driver";
import { backoff, messageOf, sleep } from "@nodeyard/runtime";
import type { Tree } from "@nodeyard/tree";
import type { Machine } from "../machine/index.ts";
import type { Log } from "../telemetry/index.ts";
import { ProcessError } from "./errors.ts";

/** Tries before a daemon gives up on a tree that never answered: about five minutes. */
const ATTEMPTS = 20;

/**
 * A daemon is often started before its ZooKeeper. What is wrong with the configuration is told at once. Rejects with the reason of
 * `stopping` when that aborts first.
 */
export async function patiently(
  machine: Machine,
  log: Log,
  open: () => Promise<Tree>,
  stopping?: AbortSignal,
): Promise<Tree> {
  const { clock, random } = machine;
  for (let attempt = 0; ; attempt++) {
    try {
      return await unlessStopped(open(), stopping);
    } catch (error) {
      const absent =
        error instanceof ProcessError &&
        (error.code === "process.no_zookeeper" || error.code === "process.no_tree");
      if (!absent || attempt + 1 >= ATTEMPTS) throw error;
      log.warn({ attempt: attempt + 1, of: ATTEMPTS }, messageOf(error));
      await sleep(clock, backoff(random, attempt, 500, 10_000), stopping);
    }
  }
}

async function unlessStopped(opening: Promise<Tree>, stopping: AbortSignal | undefined): Promise<Tree> {
  if (stopping === undefined) return opening;
  try {
    return await abortable(opening, stopping);
  } catch (error) {
    // Nobody waits for it any more.
    if (stopping.aborted)
      void opening.then(
        (tree) => tree.close(),
        () => {},
      );
    throw error;
  }
}
