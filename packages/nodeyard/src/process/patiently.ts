import { backoff, messageOf, sleep } from "@nodeyard/runtime";
import type { Tree } from "@nodeyard/tree";
import type { Log } from "../telemetry/index.ts";
import { ProcessError } from "./errors.ts";
import type { Machine } from "./machine.ts";

/** Tries before a daemon gives up on a tree that never answered: about five minutes. */
const ATTEMPTS = 20;

/** A daemon is often started before its ZooKeeper. What is wrong with the configuration is told at once. */
export async function patiently(machine: Machine, log: Log, open: () => Promise<Tree>): Promise<Tree> {
  const { clock, random } = machine;
  for (let attempt = 0; ; attempt++) {
    try {
      return await open();
    } catch (error) {
      const absent =
        error instanceof ProcessError &&
        (error.code === "process.no_zookeeper" || error.code === "process.no_tree");
      if (!absent || attempt + 1 >= ATTEMPTS) throw error;
      log.warn({ attempt: attempt + 1, of: ATTEMPTS }, messageOf(error));
      await sleep(clock, backoff(random, attempt, 500, 10_000));
    }
  }
}
