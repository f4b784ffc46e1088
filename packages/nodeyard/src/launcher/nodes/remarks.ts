import { encodeRemark, REMARKS, remarkPath } from "@nodeyard/model";
import { messageOf } from "@nodeyard/runtime";
import { TreeError } from "@nodeyard/tree";
import { withRoot } from "../../coordination/index.ts";
import type { RecordHandles } from "../held-records.ts";

type RemarkHandles = Pick<RecordHandles, "tree" | "view" | "log"> & {
  readonly ages: Pick<RecordHandles["ages"], "now">;
};

/**
 * Stores the last remark on a node, for those that follow it. It is a record of its own, because the node's record belongs to the
 * holder of its lock. Never rejects: the remark is in the journal, too.
 */
export async function storeRemark(
  { tree, ages, log }: RemarkHandles,
  node: string,
  text: string,
): Promise<void> {
  const path = remarkPath(node);
  const data = encodeRemark({ at: Math.round(ages.now()), text });
  try {
    await withRoot(tree, REMARKS, () => tree.create(path, data)).catch(async (error: unknown) => {
      if (!(error instanceof TreeError && error.code === "tree.node_exists")) throw error;
      await tree.set(path, data);
    });
  } catch (error) {
    log.warn({ node, error: messageOf(error) }, "cannot store a remark on a node");
  }
}

/** Removes remarks whose nodes are gone. */
export async function sweepRemarks({ tree, view }: RemarkHandles): Promise<void> {
  for (const path of [...view.own.keys()]) {
    if (!path.startsWith(`${REMARKS}/`) || !view.complete) continue;
    if (view.hasNode(path.slice(REMARKS.length + 1))) continue;
    await tree.delete(path).catch((error: unknown) => {
      if (!(error instanceof TreeError)) throw error;
    });
  }
}
