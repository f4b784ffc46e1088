import { availableParallelism } from "node:os";
import type { SeedOutcome } from "./outcome.ts";
import { SeedThread } from "./seed-thread.ts";

export interface CampaignOptions {
  readonly seeds: readonly number[];
  readonly workers?: number;
  /** Name of a mutant to run instead of the unchanged product. */
  readonly mutant?: string | undefined;
  readonly onOutcome: (outcome: SeedOutcome) => void;
  /** Ends the campaign early: seeds that are running are still reported. */
  readonly enough?: () => boolean;
}

/** Runs seeds on all cores, each on the next free worker. Rejects when a worker dies. */
export async function campaign(options: CampaignOptions): Promise<void> {
  const { seeds, mutant, onOutcome, enough = () => false } = options;
  const left = [...seeds];
  const workers = Math.min(options.workers ?? availableParallelism(), left.length);
  await Promise.all(Array.from({ length: workers }, () => work()));

  async function work(): Promise<void> {
    const thread = new SeedThread(mutant);
    try {
      for (let seed = left.shift(); seed !== undefined; seed = enough() ? undefined : left.shift())
        onOutcome(await thread.run(seed));
    } finally {
      await thread.close();
    }
  }
}
