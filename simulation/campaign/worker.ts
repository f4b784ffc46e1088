import { parentPort } from "node:worker_threads";
import { runSeed, type SeedOrder } from "./outcome.ts";

parentPort?.on("message", async (order: SeedOrder) => {
  parentPort?.postMessage(await runSeed(order));
});
