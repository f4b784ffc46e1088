import { parentPort, workerData } from "node:worker_threads";
import { loadMutant, mutantOf } from "../mutants/index.ts";
import type { ThreadData } from "./seed-thread.ts";

// Half of the errors of a run are answers; their stacks cost a tenth of it, and a failing seed is run again alone.
Error.stackTraceLimit = 0;

const { mutant } = workerData as ThreadData;
const wasLoaded = mutant === undefined ? () => false : loadMutant(mutantOf(mutant));
// Only now, because this loads the product.
const { runSeed } = await import("./outcome.ts");

parentPort?.on("message", async (seed: number) => {
  parentPort?.postMessage({ ...(await runSeed(seed)), isMutated: wasLoaded() });
});
