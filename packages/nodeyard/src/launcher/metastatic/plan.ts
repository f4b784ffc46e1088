import type { Draft, OwnerFacts, OwnerPlan } from "./draft.ts";
import { planBackings } from "./plan-backings.ts";
import { planClaims } from "./plan-claims.ts";
import { planRequests } from "./plan-requests.ts";

/**
 * Compares what one metastatic provider should have with what it has. Pure and level-triggered: whatever was cut off by a crash
 * shows as a difference, here or in the next owner.
 */
export function planOwner(facts: OwnerFacts): OwnerPlan {
  const draft: Draft = { actions: [], nextAt: Number.POSITIVE_INFINITY };
  planRequests(facts, draft);
  planBackings(facts, draft);
  if (facts.compare) planClaims(facts, draft);
  return draft;
}
