import { withRoot } from "@nodeyard/coordination";
import { decodeRemark, encodeRemark, REMARKS, type Remark, remarkPath } from "@nodeyard/model";
import { retireBacking } from "@nodeyard/operations";
import { messageOf } from "@nodeyard/runtime";
import { TreeError } from "@nodeyard/tree";
import type { View } from "@nodeyard/view";
import type { RecordHandles } from "../held-records.ts";

type RemarkHandles = Pick<RecordHandles, "tree" | "view" | "log" | "journal"> & {
  readonly ages: Pick<RecordHandles["ages"], "now">;
};

/**
 * Takes what a driver remarked on a machine: into the journal, and as the last remark on its node and on the nodes in its slots, for those
 * that follow them. A backing node whose machine leaves gets no new slots. Never rejects.
 */
export async function takeRemark(
  handles: RemarkHandles,
  node: string,
  text: string,
  leaves: boolean,
): Promise<void> {
  const { view, tree, journal, ages } = handles;
  const remark = { at: Math.round(ages.now()), text };
  // The record is gone, or not seen yet. Nobody could read a remark on it, and the sweep would remove it.
  if (!view.nodes.byId.has(node))
    return journal.write({ event: "node.remark", node, facts: { remark: text } });
  await putRemark(handles, node, remark);
  if (!view.slots.backings.has(node)) return;
  try {
    if (leaves) await retireBacking(tree, node, text);
  } catch (error) {
    handles.log.warn({ node, error: messageOf(error) }, "cannot retire a backing node whose machine leaves");
  }
  await putOnSlots(handles, node, remark);
}

/**
 * Removes remarks whose nodes are gone, and puts those on backing nodes on the nodes in their slots: one may have got its slot while the
 * remark was made, or the launcher may have died meanwhile.
 */
export async function sweepRemarks(handles: RemarkHandles): Promise<void> {
  const { tree, view } = handles;
  for (const [path, { data }] of [...view.own]) {
    if (!path.startsWith(`${REMARKS}/`) || !view.complete) continue;
    const node = path.slice(REMARKS.length + 1);
    if (view.slots.backings.has(node)) await putOnSlots(handles, node, decodeRemark(data));
    if (view.hasNode(node)) continue;
    await tree.delete(path).catch((error: unknown) => {
      if (!(error instanceof TreeError)) throw error;
    });
  }
}

/** The clients of slots see their own nodes only, so the remark stands on each of them. An older remark never replaces a newer one. */
async function putOnSlots(handles: RemarkHandles, backing: string, remark: Remark): Promise<void> {
  const { own } = handles.view;
  for (const node of nodesIn(handles.view, backing)) {
    const before = own.get(remarkPath(node));
    if (before === undefined || decodeRemark(before.data).at < remark.at)
      await putRemark(handles, node, { ...remark, text: `${remark.text} (its backing node ${backing})` });
  }
}

/** A claim may be of a node whose record is not seen yet: the next sweep finds it. */
function nodesIn({ slots, nodes }: Pick<View, "slots" | "nodes">, backing: string): readonly string[] {
  const claimed = [...slots.claimsOn(backing).values()].flatMap(({ node }) => node ?? []);
  const all = new Set([...claimed, ...slots.placedOn(backing).keys()]);
  return [...all].filter((node) => nodes.byId.has(node));
}

/**
 * It is a record of its own, because the node's record belongs to the holder of its lock. Only the last remark is stored; all of them
 * are in the journal. Never rejects.
 */
async function putRemark(handles: RemarkHandles, node: string, remark: Remark): Promise<void> {
  const { tree, view, log, journal } = handles;
  const record = view.nodes.byId.get(node)?.record;
  const event = { event: "node.remark", node, facts: { remark: remark.text } } as const;
  journal.write(record === undefined ? event : { ...event, record });
  const [path, data] = [remarkPath(node), encodeRemark(remark)];
  try {
    await withRoot(tree, REMARKS, () => tree.create(path, data)).catch(async (error: unknown) => {
      if (!(error instanceof TreeError && error.code === "tree.node_exists")) throw error;
      await tree.set(path, data);
    });
  } catch (error) {
    log.warn({ node, error: messageOf(error) }, "cannot store a remark on a node");
  }
}
