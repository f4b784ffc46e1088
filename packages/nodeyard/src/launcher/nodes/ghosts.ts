import { paths } from "@nodeyard/model";
import { messageOf } from "@nodeyard/runtime";
import { TreeError } from "@nodeyard/tree";
import type { Context } from "../context.ts";

/**
 * Removes node paths without data, which lockers of older kinds leave behind when they come too late (docs/contract/locks.md,
 * "Ghost paths"). One commit per ghost, which a contender or a record that appears meanwhile refuses.
 */
export async function removeGhosts(context: Context): Promise<void> {
  for (const id of [...context.view.nodes.ghosts]) {
    try {
      const names = await context.tree.children(paths.node(id));
      const lock = names.includes("lock") ? [{ op: "delete", path: paths.nodeLock(id) } as const] : [];
      await context.tree.commit([
        { op: "check", path: paths.node(id), version: 0 },
        ...lock,
        { op: "delete", path: paths.node(id) },
      ]);
      context.log.info({ node: id }, "removed an empty node path");
    } catch (error) {
      if (!(error instanceof TreeError)) throw error;
      context.log.debug(
        { node: id, error: messageOf(error) },
        "an empty node path is left for the next sweep",
      );
    }
  }
}
