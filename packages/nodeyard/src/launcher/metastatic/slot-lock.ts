import { type NodePatch, paths } from "@nodeyard/model";
import { CommitFailed } from "@nodeyard/tree";
import { FenceLost } from "../../coordination/index.ts";
import { encodeClaim, slotPlace, withoutPlace } from "../../operations/index.ts";
import type { HeldNode } from "../held-records.ts";
import type { ChosenSlot } from "./choose.ts";
import { type Claim, claimPath } from "./claims.ts";
import { agrees } from "./plan-claims.ts";

/**
 * Gives a node a slot: its record and the claim in one commit, which also demands that the backing node is as it was when the
 * slot was chosen. "moved": it is not, or someone else was quicker; nothing was written.
 */
export async function claimSlot(
  node: HeldNode,
  place: ChosenSlot,
  patch: NodePatch,
): Promise<"claimed" | "moved"> {
  try {
    await node.write(patch, (set) => [
      { op: "check", path: node.held.contender },
      { op: "check", path: paths.node(place.backing), version: place.node.version },
      { op: "create", path: claimPath(place.backing, place.slot), data: encodeClaim(node.id) },
      set,
    ]);
    return "claimed";
  } catch (error) {
    const refusal = (error as { cause?: unknown }).cause;
    if (
      error instanceof FenceLost &&
      refusal instanceof CommitFailed &&
      (refusal.index === 1 || refusal.index === 2)
    )
      return "moved";
    throw error;
  }
}

/**
 * Frees the slot of a node that we hold: the claim goes in the commit that takes the place out of its record. A slot's next claim has the
 * same path and the same version, so that only the record, at the version that names the slot, tells whose claim it is: who froze
 * before this commit, or repeats one whose answer was lost, frees nobody else's. Claims that the record does not name are the
 * owner's to compare. Resolves with how many were freed.
 */
export async function freeSlot(node: HeldNode, claims: readonly Claim[]): Promise<number> {
  const place = slotPlace(node.record);
  const own = claims.filter((claim) => agrees(claim, place));
  if (place === undefined || own.length === 0) return 0;
  await node.write({ driverData: withoutPlace(node.record) }, (set) => {
    // After what another wrote was merged, or an answer was lost, it may be there no longer, or have another.
    const now = slotPlace(node.record);
    if (now?.backing !== place.backing || now.slot !== place.slot)
      throw new FenceLost(`node ${node.id}: it does not have slot ${place.backing}/${place.slot} any more`);
    return [
      { op: "check", path: node.held.contender },
      set,
      ...own.map(({ path }) => ({ op: "delete", path }) as const),
    ];
  });
  return own.length;
}
