import { parentPort } from "node:worker_threads";
import { runSeed, type SeedOrder } from "./outcome.ts";

// Half the errors of a run are answers; their stacks cost a tenth of it, and a failing seed is run again alone.
Error.stackTraceLimit = 0;

parentPort?.on("message", async (order: SeedOrder) => {
  parentPort?.postMessage(await runSeed(order));
});
