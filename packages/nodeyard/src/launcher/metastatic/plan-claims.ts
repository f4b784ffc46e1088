import type { SlotPlace } from "../../operations/index.ts";
import { type Claim, spareName } from "./claims.ts";
import type { Draft, OwnerFacts } from "./draft.ts";

/** Claims and records are compared: they go together in every commit of ours, and apart only by others' doing. */
export function planClaims({ book, provider }: OwnerFacts, draft: Draft): void {
  for (const end of book.ends.values()) {
    const { place } = end;
    if (place === undefined || !book.placedOn(place.backing).has(end.id)) continue;
    const claims = book.claims.ofNode(end.id);
    if (!claims.some((claim) => claim.backing === place.backing) && book.claims.folders.has(place.backing))
      draft.actions.push({ type: "reclaim", node: end.id });
  }
  for (const [backing, owner] of book.claims.folders) {
    if (owner !== provider && !book.backings.has(backing)) continue;
    for (const claim of book.claims.of(backing).values())
      if (claim.node !== null && !agrees(claim, book.ends.get(claim.node)?.place))
        draft.actions.push({ type: "drop", claim });
  }
}

/** Whether a claim is the one that its node's record speaks of. */
export function agrees(claim: Claim, place: SlotPlace | undefined): boolean {
  if (place?.backing !== claim.backing) return false;
  return claim.name === String(place.slot) || claim.name === spareName(claim.node ?? "");
}
