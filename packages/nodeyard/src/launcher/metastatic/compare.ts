import { decodeNode, paths } from "@nodeyard/model";
import { TreeError } from "@nodeyard/tree";
import { encodeClaim, slotPlace } from "../../operations/index.ts";
import type { Context } from "../context.ts";
import type { Book } from "./book.ts";
import { type Claim, claimPath, spareName } from "./claims.ts";
import { agrees } from "./plan-claims.ts";

/** Makes the claim that a node's record speaks of: an older launcher made the one without the other. */
export async function reclaim(context: Context, book: Book, id: string): Promise<void> {
  const end = book.ends.get(id);
  if (end?.place === undefined) return;
  const { backing, slot } = end.place;
  const name = book.claims.of(backing).has(String(slot)) ? spareName(id) : slot;
  await context.tree.commit([
    { op: "check", path: paths.node(id), version: end.entry.version },
    { op: "create", path: claimPath(backing, name), data: encodeClaim(id) },
  ]);
  context.log.info({ node: id, backing, slot, name }, "claimed the slot that a node has");
}

/** Removes a claim that no record speaks of; the record is read anew, since the view may show the claim first. */
export async function dropClaim(context: Context, claim: Claim): Promise<void> {
  const { path, node, version } = claim;
  const remove = { op: "delete", path, version } as const;
  try {
    const found = await context.tree.get(paths.node(node ?? ""));
    if (agrees(claim, slotPlace(decodeNode(node ?? "", found.data)))) return;
    await context.tree.commit([
      { op: "check", path: paths.node(node ?? ""), version: found.stat.version },
      remove,
    ]);
  } catch (error) {
    if (!(error instanceof TreeError) || error.code !== "tree.no_node") throw error;
    await context.tree.commit([remove]);
  }
  context.log.info({ node, claim: path }, "freed a slot whose node is gone");
}
