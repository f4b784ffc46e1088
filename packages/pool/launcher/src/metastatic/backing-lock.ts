import {
  backingOwner,
  changeNode,
  claimPath,
  encodeBacking,
  encodeClaim,
  encodeFolder,
  encodeNode,
  paths,
  RETIRED,
  SLOTS,
  slotsFolder,
  spareName,
} from "@nodeyard/model";
import { type CheckOp, ensurePath, type Op, orUndefined, treeSeconds } from "@nodeyard/tree";
import type { Backing } from "@nodeyard/view";
import type { RecordHandles } from "../held-records.ts";

/**
 * The durable contender by which a backing node is ours: the first in line says our name. Undefined when it does not, whatever the
 * record says (docs/contract/locks.md, "Persistent contenders").
 */
export async function ownContender(
  context: RecordHandles,
  provider: string,
  node: string,
): Promise<string | undefined> {
  const parent = paths.nodeLock(node);
  const names = [...((await orUndefined(context.tree.children(parent))) ?? [])];
  const [first] = names.sort((a, b) => (a.slice(-10) < b.slice(-10) ? -1 : 1));
  if (first === undefined) return undefined;
  const path = `${parent}/${first}`;
  const found = await orUndefined(context.tree.get(path));
  return found && Buffer.from(found.data).toString() === backingOwner(provider) ? path : undefined;
}

/**
 * Lets a backing node take slots that another kind of launcher left: folder and a claim for each node that lives on it, in one commit.
 * False when its lock is not ours. Rejects with CommitFailed when a record has changed since the view showed it; the next
 * reconciliation tries again.
 */
export async function openBacking(
  context: RecordHandles,
  provider: string,
  backing: Backing,
  fence: CheckOp,
): Promise<boolean> {
  if ((await ownContender(context, provider, backing.id)) === undefined) return false;
  await ensurePath(context.tree, SLOTS);
  const ops: Op[] = [
    { op: "create", path: slotsFolder(backing.id), data: encodeFolder(provider) },
    { op: "check", path: paths.node(backing.id), version: backing.entry.version },
    fence,
  ];
  const numbers = new Set<number>();
  for (const [node, slot] of [...context.view.slots.placedOn(backing.id)].sort(([a], [b]) =>
    a < b ? -1 : 1,
  )) {
    // Two nodes in one slot, as other launchers can leave them: the second has a claim of its own, so that the folder is not empty
    // before both are gone.
    const name = numbers.has(slot) ? spareName(node) : slot;
    numbers.add(slot);
    ops.push(
      { op: "check", path: paths.node(node), version: context.view.nodes.byId.get(node)!.version },
      { op: "create", path: claimPath(backing.id, name), data: encodeClaim(node) },
    );
  }
  await context.tree.commit(ops);
  context.journal.write({
    event: "backing.adopted",
    node: backing.id,
    facts: { provider, label: backing.data.label, slots: backing.data.slots, used: numbers.size },
  });
  return true;
}

/**
 * Writes down that a backing node takes no more slots. False when its lock is not ours. The record tells other kinds of launchers,
 * which do not know of the folder's marker.
 */
export async function markFailed(
  context: RecordHandles,
  provider: string,
  { id, data, entry }: Backing,
  fence: CheckOp,
): Promise<boolean> {
  const contender = await ownContender(context, provider, id);
  if (contender === undefined) return false;
  const userData = encodeBacking({ ...data, failed: true }, entry.record.userData);
  const record = changeNode(entry.record, { userData }, treeSeconds(context));
  await context.tree.commit([
    { op: "check", path: contender },
    { op: "set", path: paths.node(id), data: encodeNode(record), version: entry.version },
    fence,
  ]);
  context.journal.write({ event: "backing.failed", node: id, facts: { label: data.label } });
  return true;
}

/**
 * Gives an empty backing node back: one commit sets `used` (unless the state has changed), deletes the slots folder and releases the
 * lock. The commit fails while the folder has a claim. Other contenders stay. Returns false when this launcher does not hold the lock.
 */
export async function releaseBacking(
  context: RecordHandles,
  provider: string,
  { id, data, entry }: Backing,
  why: string,
  fence: CheckOp,
): Promise<boolean> {
  const contender = await ownContender(context, provider, id);
  if (contender === undefined) return false;
  const record = changeNode(entry.record, { state: "used" }, treeSeconds(context));
  const { version } = entry;
  await context.tree.commit([
    entry.record.state === "in-use"
      ? { op: "set", path: paths.node(id), data: encodeNode(record), version }
      : { op: "check", path: paths.node(id), version },
    ...folderEnd(context, id),
    { op: "delete", path: contender },
    fence,
  ]);
  context.journal.write({ event: "backing.released", node: id, facts: { provider, label: data.label, why } });
  return true;
}

/**
 * Removes the folder of a backing node, where there is one. ZooKeeper deletes no znode with children, so its marker goes first, and a
 * claim makes the commit fail.
 */
export function folderEnd({ view: { slots } }: Pick<RecordHandles, "view">, backing: string): Op[] {
  const folder = slotsFolder(backing);
  return [
    ...(slots.retired.has(backing) ? [{ op: "delete", path: `${folder}/${RETIRED}` } as const] : []),
    ...(slots.folders.has(backing) ? [{ op: "delete", path: folder } as const] : []),
  ];
}
