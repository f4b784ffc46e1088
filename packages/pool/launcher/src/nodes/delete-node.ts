import { placeText } from "@nodeyard/driver";
import {
  borneSince,
  changeNode,
  costBetween,
  encodeNode,
  type NodeRecord,
  paths,
  placeOf,
  priceOf,
  type Returned,
  returnedOf,
  reuseOf,
} from "@nodeyard/model";
import { deadline, errorClass, messageOf, NodeyardError } from "@nodeyard/runtime";
import { isElsewhere } from "@nodeyard/scheduler";
import type { LiveTask } from "@nodeyard/telemetry";
import { CommitFailed, isRefused, type Op, TreeError, treeSeconds } from "@nodeyard/tree";
import type { OpenProvider } from "../handles.ts";
import type { HeldNode, RecordHandles } from "../held-records.ts";
import { ANSWER_MS, silent } from "../providers/providers.ts";
import type { NodeHandles } from "./handles.ts";
import { lockNode } from "./node-lock.ts";
import { removeMachine } from "./remove-machine.ts";
import { tagOf } from "./tag.ts";

/** The machine of a node is where its provider does not look any more. */
class Elsewhere extends errorClass("launcher.elsewhere") {}

/**
 * Rounds of clearing contenders that others left under the lock, at most. Each round removes what the one before found; new contenders
 * may come in between.
 */
const CLEAR_ROUNDS = 5;

/** "skipped": locked by someone, or perhaps no longer to be deleted. "failed": to be tried again. */
export type Deleted =
  | { readonly result: "deleted" | "skipped" }
  | { readonly result: "failed"; readonly error: string };

/**
 * States from which a node is always deleted. A node in another state is deleted only as the record for which that was decided: a `ready`
 * or `hold` node has an age that begins anew when it is given that state once more, and the user of one that is `in-use` or `testing` may
 * have come back.
 */
const GOING: ReadonlySet<string> = new Set([
  "init",
  "used",
  "building",
  "failed",
  "deleting",
  "deleted",
  "aborted",
]);

/** One whose lock went before its state was seen to be `used` may be used again, which is to be decided first. */
function isGoing(record: NodeRecord): boolean {
  return GOING.has(record.state) && !(record.state === "used" && reuseOf(record) !== undefined);
}

/**
 * Deletes a node: lock, `deleting`, the machine, then record and lock in one commit. A crash anywhere leaves a record that the next
 * sweep finds again. `version`: of the record for which the deletion was decided. Rejects only for what `lockNode` and `release` reject
 * with.
 */
export async function deleteNode(
  context: NodeHandles,
  id: string,
  { version, why, attempt }: { readonly version: number; readonly why: string; readonly attempt: number },
  signal: AbortSignal,
  live: LiveTask,
): Promise<Deleted> {
  const node = await lockNode(context, id);
  if (node === "gone") return { result: "deleted" };
  if (node === "busy") return { result: "skipped" };
  live.holds(node.held.contender);
  const { record } = node;
  if (node.version !== version && !isGoing(record)) {
    await node.held.release();
    return { result: "skipped" };
  }
  const { state: from } = record;
  context.journal.write({ event: "node.deleting", node: id, facts: { attempt, from, why }, record });
  try {
    // The view may be behind. The record must be checked before the machine is deleted, also when it already says `deleting`.
    if (record.state !== "deleting" && record.state !== "deleted") await node.write({ state: "deleting" });
    else if (record.state === "deleting") await node.confirm();
    if (record.state !== "deleted" && record.provider !== null)
      // As it was found: the state says it, too.
      await unmake(context, node, { attempt, returned: returnedOf(record) }, signal);
    live.at("removes the record");
    await removeRecord(context, node);
    context.counters.add("launcher.deletes", 1, { provider: record.provider ?? "", result: "deleted" });
    countCost(context, record);
    context.journal.write({ event: "node.deleted", node: id, facts: { from }, record });
    return { result: "deleted" };
  } catch (failure) {
    const error = messageOf(failure);
    context.counters.add("launcher.deletes", 1, { provider: record.provider ?? "", result: "failed" });
    await node.held.release().catch(() => {});
    return { result: "failed", error };
  }
}

/**
 * What a node cost, for the metric, since it was made or its last user gave it back: its user's part, and that of the time before it was given
 * to anybody.
 */
export function countCost({ counters, ages }: NodeHandles, record: NodeRecord): void {
  const price = priceOf(record);
  if (price === undefined || record.createdTime === null) return;
  const from = reuseOf(record)?.counted ?? record.createdTime;
  const [made, now] = [from * 1_000, ages.now()];
  const given = record.allocatedTo === null ? now : (borneSince(record) ?? made);
  const tenant = record.allocatedTo === null ? "" : (record.tenantName ?? "");
  const of = { label: record.type[0] ?? "", currency: price.currency };
  counters.add("launcher.cost", costBetween(price, made, given), { ...of, tenant: "" });
  counters.add("launcher.cost", costBetween(price, given, now), { ...of, tenant });
}

/** Removes the machine. Rejects while its provider is not open here; the deletion is then tried again. */
async function unmake(
  context: NodeHandles,
  node: HeldNode,
  { attempt, returned }: { readonly attempt: number; readonly returned: Returned | undefined },
  signal: AbortSignal,
): Promise<void> {
  const { record, id } = node;
  const open = context.openFor(record);
  if (open === undefined)
    throw new NodeyardError("launcher.no_provider", `provider ${record.provider} of node ${id} is not open`);
  await assertHere(context, node, open, signal);
  const of = { node: id, of: "delete", attempt } as const;
  const work = removeMachine(context, open, node, of, signal, returned);
  // A provider that is replaced or removed is closed when this has ended.
  const noted = work.catch(() => {}).finally(() => open.work.delete(noted));
  open.work.add(noted);
  await work;
}

/**
 * A provider that looks elsewhere would say that the machine is gone, and it would run on without a record. But a place may only have got
 * another name: then the machine is found here by its tag. Rejects with Elsewhere.
 */
async function assertHere(
  context: NodeHandles,
  node: HeldNode,
  { provider, config }: OpenProvider,
  signal: AbortSignal,
): Promise<void> {
  const { id, record } = node;
  const here = provider.place?.();
  if (here === undefined || !isElsewhere(record, here)) return;
  const late = () => silent(config.name, "find");
  using limit = deadline(context.clock, ANSWER_MS, late, signal);
  if ((await provider.find(tagOf(context, node), limit.signal)) !== undefined) return;
  const [there, now] = [placeText(placeOf(record)!), placeText(here)];
  throw new Elsewhere(
    `the machine of node ${id} is in ${there}, and provider ${config.name} now works in ${now}: put the former settings back until it is deleted, or delete the machine there by hand and forget its record`,
  );
}

/**
 * `deleted`, contender, lock and record go in one commit; contenders of late comers are cleared away first. Rejects with the error of
 * the commit, after too many rounds or for another refusal; the record then stays `deleting`.
 */
export async function removeRecord(context: RecordHandles, node: HeldNode): Promise<void> {
  const parent = node.held.parent;
  const data = encodeNode(changeNode(node.record, { state: "deleted" }, treeSeconds(context)));
  for (let round = 0; ; round++) {
    const ops: Op[] = [
      { op: "set", path: node.path, data, version: node.version },
      { op: "delete", path: node.held.contender },
      { op: "delete", path: parent },
      { op: "delete", path: node.path },
    ];
    try {
      await (context.ledgers.counted(node.record, undefined, ops) ?? context.tree.commit(ops));
      return;
    } catch (error) {
      if (error instanceof TreeError && error.outcome === "unknown") {
        // The connection may be to another server now, which is behind.
        await context.tree.sync(node.path);
        if ((await context.tree.stat(node.path)) === undefined) return;
      }
      const notEmpty = error instanceof CommitFailed && error.reason.code === "tree.not_empty";
      if (round >= CLEAR_ROUNDS || !(notEmpty || (error instanceof TreeError && error.outcome === "unknown")))
        throw error;
      const others = (await context.tree.children(parent))
        .map((name) => `${parent}/${name}`)
        .filter((path) => path !== node.held.contender);
      const strays = (await context.tree.children(paths.node(node.id)))
        .filter((name) => name !== "lock")
        .map((name) => `${node.path}/${name}`);
      await Promise.all([...others, ...strays].map((path) => clearAway(context, node, path)));
    }
  }
}

/** Only while this process holds the lock, because the next contender in line may get it at any moment. */
async function clearAway(context: RecordHandles, { held }: HeldNode, path: string): Promise<void> {
  try {
    await context.tree.commit([held.fence, { op: "delete", path }]);
  } catch (error) {
    if (!isRefused(error, "tree.no_node", path)) throw error;
  }
}
