import { type NodePatch, paths } from "@nodeyard/model";
import { CommitFailed, TreeError } from "@nodeyard/tree";
import { FenceLost } from "../../coordination/index.ts";
import { encodeClaim, type SlotPlace } from "../../operations/index.ts";
import type { NodeEntry } from "../../view/index.ts";
import type { Context } from "../context.ts";
import type { HeldNode } from "../fence/records.ts";
import { type Claim, claimPath } from "./claims.ts";

/**
 * Gives a node a slot: its record and the claim in one commit, which also demands that the backing node is as it was when the
 * slot was chosen. "moved": it is not, or someone else was quicker; nothing was written.
 */
export async function claimSlot(
  node: HeldNode,
  backing: NodeEntry,
  place: SlotPlace,
  patch: NodePatch,
): Promise<"claimed" | "moved"> {
  try {
    await node.write(patch, (set) => [
      { op: "check", path: node.held.contender },
      { op: "check", path: paths.node(backing.id), version: backing.version },
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

/** Frees the slots that a node has. The node is locked by us, or gone. */
export async function dropClaims(context: Context, claims: readonly Claim[]): Promise<void> {
  await Promise.all(
    claims.map(({ path }) => context.tree.delete(path).catch((error: unknown) => ignoreMissing(error))),
  );
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof TreeError) || error.code !== "tree.no_node") throw error;
}
