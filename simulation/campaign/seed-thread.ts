import { Worker } from "node:worker_threads";
import type { SeedOutcome } from "./outcome.ts";

/** A run makes garbage without end and keeps little: a larger nursery than Node's saves a tenth of it. */
const YOUNG_MB = 96;

/** What a thread is started with. */
export interface ThreadData {
  /** Name of the mutant that it runs; absent: the product as it is. */
  readonly mutant: string | undefined;
}

/** A thread that runs one seed at a time, of the product as it is or of one mutant. */
export class SeedThread {
  readonly #worker: Worker;

  constructor(mutant?: string) {
    this.#worker = new Worker(new URL("./worker.ts", import.meta.url), {
      workerData: { mutant } satisfies ThreadData,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
  }

  /** Rejects when the thread dies. */
  run(seed: number): Promise<SeedOutcome> {
    const { promise, resolve, reject } = Promise.withResolvers<SeedOutcome>();
    this.#worker.once("message", resolve);
    this.#worker.once("error", reject);
    this.#worker.postMessage(seed);
    return promise.finally(() => {
      this.#worker.off("message", resolve);
      this.#worker.off("error", reject);
    });
  }

  /** Ends it, also in the middle of a seed. */
  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}
