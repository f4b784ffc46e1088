import { learnFacts } from "./learn-facts.ts";
import type { ProviderHandles } from "./providers.ts";
import type { Served } from "./served.ts";

/** Between two reads while nothing is unusual, milliseconds. */
const FACTS_MS = 300_000;
/** The shortest time between two reads of the quota, after a refusal or while a request waits for it, milliseconds. */
export const ASK_MS = 2_000;
/** Machines without a record are going, and count as used by others until then: looked at again after this, then later. */
const UNSETTLED_MS = 10_000;
/** A provider whose facts could not be read is asked again after this, milliseconds. */
export const FAILING_MS = 30_000;

/**
 * Reads the facts of an open provider again, since quotas change without an event. False when the provider has been replaced or
 * closed. Rejects with the driver's error; the old facts stay in force.
 */
export async function refreshFacts(context: ProviderHandles, served: Served): Promise<boolean> {
  const { config, open, stop } = served;
  // What took its place has facts of its own.
  const isOver = () => served.open !== open || stop.signal.aborted;
  if (open === undefined || isOver()) return false;
  try {
    const facts = await learnFacts(open, context, stop.signal);
    if (isOver()) return false;
    served.facts = facts;
  } catch (error) {
    if (isOver()) return false;
    throw error;
  }
  served.failing = undefined;
  // The ledger of the provider has the new limit before the scheduler plans with it.
  context.ledgers.setProvider(config.name, served.facts.local.quota);
  return true;
}

/** How long the facts are valid: shorter while calls fail or the listing does not match the records. */
export function factsPause(served: Served): number {
  served.unsettled = served.facts?.unsettled === true ? served.unsettled + 1 : 0;
  const { unsettled } = served;
  return unsettled === 0 ? FACTS_MS : Math.min(FACTS_MS, UNSETTLED_MS * 2 ** (unsettled - 1));
}
