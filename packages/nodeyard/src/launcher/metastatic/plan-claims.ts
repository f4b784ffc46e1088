import type { SlotPlace } from "../../operations/index.ts";
import { type Claim, claimPath, spareName } from "./claims.ts";
import type { Draft, OwnerFacts } from "./draft.ts";

/** Claims and records are compared: they go together in every commit of ours, and apart only by others' doing. */
export function planClaims({ book, provider }: OwnerFacts, draft: Draft): void {
  const stale = new Set<string>();
  for (const [backing, owner] of book.claims.folders) {
    if (owner !== provider && !book.backings.has(backing)) continue;
    for (const claim of book.claims.of(backing).values()) {
      if (claim.node === null || book.unreadable.has(claim.node)) continue;
      if (agrees(claim, book.ends.get(claim.node)?.place)) continue;
      stale.add(claim.path);
      draft.actions.push({ type: "drop", claim });
    }
  }
  for (const { id, place } of book.ends.values()) {
    if (place === undefined || !book.placedOn(place.backing).has(id)) continue;
    const has = book.claims.ofNode(id).some(({ backing }) => backing === place.backing);
    // A slot that is about to be freed is claimed afterwards.
    if (has || !book.claims.folders.has(place.backing) || stale.has(claimPath(place.backing, place.slot)))
      continue;
    draft.actions.push({ type: "reclaim", node: id });
  }
}

/** Paths of claims that name no node. Whose they are nobody knows, so that their slots stay taken until somebody deletes them. */
export function senselessClaims({
  book,
  provider,
}: Pick<OwnerFacts, "book" | "provider">): readonly string[] {
  return [...book.claims.folders]
    .filter(([, owner]) => owner === provider)
    .flatMap(([backing]) => [...book.claims.of(backing).values()])
    .filter(({ node }) => node === null)
    .map(({ path }) => path);
}

/** Whether a claim is the one that its node's record speaks of. */
export function agrees(claim: Claim, place: SlotPlace | undefined): boolean {
  if (place?.backing !== claim.backing) return false;
  return claim.name === String(place.slot) || claim.name === spareName(claim.node ?? "");
}
