import { Broken } from "../checks/index.ts";
import { type SimulationResult, simulate } from "../run.ts";

/** The end of one seed: what it did, or the rule that it broke. */
export interface SeedOutcome {
  readonly seed: number;
  readonly result?: SimulationResult;
  readonly failure?: Failure;
  /** Whether its thread has loaded the file that its mutant changes. */
  readonly isMutated?: boolean;
}

export interface Failure {
  readonly seed: number;
  /** "unexpected" for an error that does not come from a check. */
  readonly rule: string;
  readonly message: string;
}

export async function runSeed(seed: number): Promise<SeedOutcome> {
  try {
    return { seed, result: await simulate({ seed }) };
  } catch (error) {
    const rule = error instanceof Broken ? error.rule : "unexpected";
    const message = String(error instanceof Broken ? error.message : (error as Error)?.stack);
    return { seed, failure: { seed, rule, message } };
  }
}
