import { parseRequestId, paths } from "@nodeyard/model";
import { messageOf } from "@nodeyard/runtime";
import { orUndefined, TreeError } from "@nodeyard/tree";
import type { Handles } from "./handles.ts";

/** Lock parents are kept this long after the request is gone (docs/contract/locks.md, "Lock parents of requests"). */
const KEEP_MS = 8 * 3_600_000;
/** Parents removed in one sweep, at most: the rest is for the next one. */
const PER_SWEEP = 4_096;
const AT_ONCE = 32;

/**
 * Removes lock parents of requests that are long gone, oldest first, so that a sweep looks at no more than it removes. A request
 * that cannot be read is not gone. Contenders are never deleted: they end with their sessions, and one that stands is somebody's.
 */
export async function removeLockParents(handles: Handles): Promise<void> {
  const { tree, view, ages } = handles;
  if (!view.complete || !ages.trusted) return;
  const names = (await orUndefined(tree.children(paths.requestsLock))) ?? [];
  const gone = names
    .filter((name) => !view.requests.byId.has(name) && !view.unreadable.has(paths.request(name)))
    .sort(bySequence);
  for (let at = 0; at < Math.min(gone.length, PER_SWEEP); at += AT_ONCE) {
    const old = await Promise.all(gone.slice(at, at + AT_ONCE).map((name) => removeIfOld(handles, name)));
    if (old.includes(false)) return;
  }
}

/** False for one that is to be kept; those after it are younger. */
async function removeIfOld({ tree, ages }: Handles, name: string): Promise<boolean> {
  const parent = paths.requestLock(name);
  const stat = await tree.stat(parent);
  if (stat === undefined) return true;
  if (ages.now() - stat.mtime <= KEEP_MS) return false;
  try {
    await tree.delete(parent);
  } catch (error) {
    if (!(error instanceof TreeError) || error.outcome === "unknown") throw error;
  }
  return true;
}

/** A request's sequence number tells its age; a name without one is nobody's and stands last. */
function bySequence(a: string, b: string): number {
  const [left, right] = [parseRequestId(a)?.sequence ?? "~", parseRequestId(b)?.sequence ?? "~"];
  return left < right ? -1 : left > right ? 1 : 0;
}

/**
 * Removes node paths without data, which lockers of older kinds leave behind when they come too late (docs/contract/locks.md,
 * "Ghost paths"). One commit per ghost, which a contender or a record that appears meanwhile refuses.
 */
export async function removeGhosts(context: Handles): Promise<void> {
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
