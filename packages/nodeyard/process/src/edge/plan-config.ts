import { Worker } from "node:worker_threads";
import { type Clock, messageOf } from "@nodeyard/runtime";
import type { PlanAnswer, PlanOrder } from "./plan-worker.ts";

/** Below what clients and proxies wait for, milliseconds. */
const LIMIT_MS = 50_000;
/** A demand that needs more ends the thread, not the launcher. */
const MEMORY_MIB = 512;

/**
 * Plays two configurations in a thread, which ends with its time or its memory. Never rejects. The thread does not keep the
 * process alive.
 */
export function planConfig(
  order: PlanOrder,
  clock: Pick<Clock, "setTimer">,
  limitMs = LIMIT_MS,
): Promise<PlanAnswer> {
  const { promise, resolve } = Promise.withResolvers<PlanAnswer>();
  const worker = new Worker(new URL("./plan-worker.ts", import.meta.url), {
    workerData: order,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB },
  });
  worker.unref();
  const remedy = 'plan with fewer days, or with "nodeyard plan", which has no limit';
  const late = clock.setTimer(limitMs, () =>
    resolve({ problem: `it takes longer than ${limitMs / 1_000} s: ${remedy}` }),
  );
  worker.once("message", resolve);
  worker.once("error", (error) => resolve({ problem: `${messageOf(error)}: ${remedy}` }));
  worker.once("exit", () => resolve({ problem: `the thread ended without an answer: ${remedy}` }));
  return promise.finally(() => {
    late.cancel();
    void worker.terminate();
  });
}
