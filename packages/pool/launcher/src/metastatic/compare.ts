import {
  claimPath,
  decodeClaim,
  decodeNode,
  encodeClaim,
  paths,
  slotPlace,
  spareName,
} from "@nodeyard/model";
import { type CheckOp, orUndefined } from "@nodeyard/tree";
import { agrees, type SlotClaim } from "@nodeyard/view";
import type { RecordHandles } from "../held-records.ts";

/** Makes the claim that a node's record speaks of: an older launcher made the one without the other. `fence` demands that we own the provider. */
export async function reclaim(context: RecordHandles, id: string, fence: CheckOp): Promise<void> {
  const entry = context.view.nodes.byId.get(id);
  const place = entry && slotPlace(entry.record);
  if (place === undefined) return;
  const { backing, slot } = place;
  // The place is claimed by another node: this one gets a claim under a spare name, so that its backing node is not given back under
  // it.
  const name = context.view.slots.claimsOn(backing).has(String(slot)) ? spareName(id) : slot;
  await context.tree.commit([
    { op: "check", path: paths.node(id), version: entry!.version },
    { op: "create", path: claimPath(backing, name), data: encodeClaim(id) },
    fence,
  ]);
  context.log.info({ node: id, backing, slot, name }, "claimed the slot that a node has");
}

/**
 * Removes a claim that no node's record names. The claim is read again first: its node may have freed it, and the claim of the next
 * node has the same path and version. The claim cannot pass to another node between this read and the commit: only the owner of the
 * provider frees claims without a record, and `fence` checks that this process still is the owner. The commit also checks the version
 * of the node's record, so that the record cannot begin to name the claim.
 */
export async function dropClaim(
  { tree, log }: RecordHandles,
  claim: SlotClaim,
  fence: CheckOp,
): Promise<void> {
  const { path, node } = claim;
  // A claim that names no node is an operator's to delete (`claimsOfNoNode`).
  if (node === null) return;
  // The view may show the claim before the record, and the server that we are connected to may be behind.
  await tree.sync(path);
  const record = await orUndefined(tree.get(paths.node(node)));
  if (record !== undefined && agrees(claim, slotPlace(decodeNode(node, record.data)))) return;
  const standing = await orUndefined(tree.get(path));
  if (standing === undefined || decodeClaim(standing.data) !== node) return;
  await tree.commit([
    ...(record === undefined
      ? []
      : [{ op: "check", path: paths.node(node), version: record.stat.version } as const]),
    { op: "delete", path, version: standing.stat.version },
    fence,
  ]);
  log.info({ node, claim: path }, "freed a slot whose node is gone");
}
