import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { Build } from "../broken/index.ts";
import type { SeedOrder, SeedOutcome } from "./outcome.ts";

/** A run makes garbage without end and keeps little: a larger nursery than Node's saves a tenth of it. */
const YOUNG_MB = 96;

export interface CampaignOptions {
  readonly seeds: readonly number[];
  readonly workers?: number;
  readonly build?: Build | undefined;
  readonly onOutcome: (outcome: SeedOutcome) => void;
  /** Ends the campaign early: seeds under way are still told. */
  readonly enough?: () => boolean;
}

/** Runs seeds on all cores, each in the order in which a worker is free. Rejects when a worker dies. */
export async function campaign(options: CampaignOptions): Promise<void> {
  const { seeds, build, onOutcome, enough = () => false } = options;
  const left = [...seeds];
  const workers = Math.min(options.workers ?? availableParallelism(), left.length);
  await Promise.all(Array.from({ length: workers }, () => work()));

  function work(): Promise<void> {
    return new Promise((resolve, reject) => {
      const worker = new Worker(new URL("./worker.ts", import.meta.url), {
        resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
      });
      const next = () => {
        const seed = enough() ? undefined : left.shift();
        if (seed === undefined) void worker.terminate().then(() => resolve(), reject);
        else worker.postMessage({ seed, build } satisfies SeedOrder);
      };
      worker.on("message", (outcome: SeedOutcome) => {
        onOutcome(outcome);
        next();
      });
      worker.on("error", reject);
      next();
    });
  }
}
