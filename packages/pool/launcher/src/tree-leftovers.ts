import { parseRequestId, paths } from "@nodeyard/model";
import { compareText, messageOf } from "@nodeyard/runtime";
import { orUndefined, TreeError } from "@nodeyard/tree";
import type { Handles } from "./handles.ts";

/** Lock parents are kept this long after the request is gone (docs/contract/locks.md, "Lock parents of requests"). */
const KEEP_MS = 8 * 3_600_000;
/** Parents removed in one sweep, at most: the rest is for the next one. */
const PER_SWEEP = 4_096;
/** Requests in flight, at most: a sweep must not hold up the work of the launcher. */
const AT_ONCE = 32;

/**
 * Removes lock parents of requests that were deleted long ago, oldest first, so that a sweep reads no more znodes than it removes. The
 * lock parent of an unreadable request stays. Contenders are never deleted here: each ends with the session of its owner. Called every
 * minute by each launcher; a znode that another one removed counts as removed.
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

/** Returns false for a lock parent that stays; the ones after it are younger. */
async function removeIfOld({ tree, ages }: Handles, name: string): Promise<boolean> {
  const parent = paths.requestLock(name);
  const stat = await tree.stat(parent);
  if (stat === undefined) return true;
  if (ages.now() - stat.mtime <= KEEP_MS) return false;
  try {
    await tree.delete(parent);
  } catch (error) {
    // Refused: a contender is there, or another launcher removed it. The next sweep looks again.
    if (!(error instanceof TreeError) || error.outcome === "unknown") throw error;
  }
  return true;
}

/** Orders by sequence number, which grows with the time of creation; names without one come last. */
function bySequence(a: string, b: string): number {
  const [left, right] = [parseRequestId(a)?.sequence ?? "~", parseRequestId(b)?.sequence ?? "~"];
  return compareText(left, right);
}

/**
 * Removes node paths without data, which lockers of older kinds leave behind when they come too late (docs/contract/locks.md,
 * "Ghost paths"). One commit for each path; it fails if a contender or a record has appeared since the path was read.
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
