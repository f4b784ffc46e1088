import {
  changeNode,
  deadLetterPath,
  decodeNode,
  encodeNode,
  isSuspended,
  mayGo,
  type NodePatch,
  type NodeRecord,
  type NodeState,
  paths,
  placeOf,
  RecordError,
} from "@nodeyard/model";
import { NodeyardError } from "@nodeyard/runtime";
import {
  CommitFailed,
  type HeldLock,
  lock,
  orUndefined,
  type Tree,
  TreeError,
  treeNow,
} from "@nodeyard/tree";
import { readDeadLetter, retryDeletion } from "./dead-letter.ts";
import type { OperationHandles } from "./handles.ts";
import { readNode } from "./listing.ts";
import { serversOf } from "./provider-info.ts";

/** How long `delete` and `hold` wait for a node's lock (docs/contract/locks.md, "Who takes which lock"). */
const LOCK_WAIT_MS = 5_000;

/** A node cannot be held or deleted as asked; the message says why and what to do. Nothing was written. */
export class NodeOperationError extends NodeyardError {}

/**
 * Marks a node for deletion; a launcher that serves its provider carries it out. The record of a node that cannot be read is
 * removed instead, under the node's lock: then its machine has no record, and leak sweeps delete it. Rejects with
 * NodeOperationError, also when no launcher would delete it. While a launcher deletes it, it has the lock, and a second call rejects.
 * `now`: what could not be deleted in many tries is tried again at once, and a node that is being deleted already stays so.
 */
export async function deleteNode(handles: OperationHandles, id: string, now = false): Promise<void> {
  const record = await readNode(handles, id).catch(() => undefined);
  const provider = record?.provider ?? null;
  if (provider !== null && (await serversOf(handles, provider)).length === 0)
    throw new NodeOperationError(
      "operation.provider_not_served",
      `no launcher serves provider ${provider}, so nobody would delete node ${id}: put the provider back into a configuration, or give up the record, and nothing else, with "nodeyard delete ${id} --forget"`,
    );
  // With a dead letter the node is already in `deleting`: removing the mark is enough, and its launcher may have the lock.
  if (now && ((await retryDeletion(handles, id)) || record?.state === "deleting")) return;
  await changeLocked(handles, id, { state: "deleting" }, (held, version) =>
    removeRecord(handles, id, held, version),
  );
}

/** What may run on without a record: the machine of a node that was given up. */
export interface Forgotten {
  readonly provider: string | null;
  /** As the cloud named it; null: the record did not say. */
  readonly server_id: string | null;
  /** In words of its cloud, for people: "region us-west-2". */
  readonly place: string;
}

/**
 * Removes the record of a node whose provider no launcher serves, or that could not be deleted in many tries, and deletes nothing in its
 * cloud. Rejects with NodeOperationError for any other node, and while somebody has its lock.
 */
export async function forgetNode(handles: OperationHandles, id: string): Promise<Forgotten> {
  return underLock(handles, id, async (held, version, record) => {
    if (record instanceof RecordError) throw unreadableNode(id, record);
    const { provider, externalId, cloud, az } = record;
    const [host] = provider === null ? [] : await serversOf(handles, provider, false);
    if (host !== undefined && (await readDeadLetter(handles, id)) === undefined)
      throw new NodeOperationError(
        "operation.provider_served",
        `${host} serves provider ${provider} of node ${id}, and would lose its machine: delete it with "nodeyard delete ${id}"; what cannot be deleted in many tries may be given up`,
      );
    // Loaded for this alone: a driver's words cost every command its start. Before the record goes, since nothing else names the machine.
    const { idText, placeText } = await import("@nodeyard/driver");
    const place = placeText({ ...(cloud && { cloud }), ...placeOf(record), ...(az && { zone: az }) });
    const forgotten = { provider, server_id: externalId && idText(externalId), place };
    await removeRecord(handles, id, held, version);
    return forgotten;
  });
}

/** Holds a node: no launcher deletes it before `forSeconds` have passed (0: only the global limit applies). */
export async function holdNode(
  handles: OperationHandles,
  id: string,
  facts: { readonly comment: string; readonly forSeconds: number },
): Promise<void> {
  await changeLocked(
    handles,
    id,
    {
      state: "hold",
      comment: facts.comment,
      holdExpiration: facts.forSeconds > 0 ? facts.forSeconds : null,
    },
    (_held, _version, error) => Promise.reject(unreadableNode(id, error)),
  );
}

/** Ends the hold of a node: it is deleted, or if it is a static host offered again. Rejects for a node that is not held. */
export async function endHold(handles: OperationHandles, id: string): Promise<void> {
  await changeLocked(
    handles,
    id,
    { state: "used" },
    (_held, _version, error) => Promise.reject(unreadableNode(id, error)),
    "hold",
  );
}

/**
 * Changes a node's state under its lock, with a check of the version: the commit fails if the lock is lost meanwhile. `unread`
 * decides on a record that cannot be read. `from`: the only state that it may be in.
 */
async function changeLocked(
  handles: OperationHandles,
  id: string,
  patch: NodePatch & { readonly state: NodeState },
  unread: (held: HeldLock, version: number, error: RecordError) => Promise<void>,
  from?: NodeState,
): Promise<void> {
  await underLock(handles, id, async (held, version, before) => {
    if (before instanceof RecordError) return unread(held, version, before);
    // From `building` to `hold` is the step of a launcher that has suspended a spare.
    if (!mayGo("node", before.state, patch.state) || (before.state === "building" && patch.state === "hold"))
      throw wrongState(id, before.state, patch.state);
    if (from !== undefined && before.state !== from) throw wrongState(id, before.state, patch.state);
    // What a person holds is no spare any more that a request may have.
    const own = isSuspended(before) ? { holdJob: null } : {};
    const record = changeNode(before, { ...patch, ...own }, treeNow(handles) / 1000);
    await handles.tree.commit([
      held.fence,
      { op: "set", path: paths.node(id), data: encodeNode(record), version },
    ]);
  });
}

/** Does `work` with a node's record, or with the reason why it cannot be read, while this call has the node's lock. */
async function underLock<T>(
  handles: OperationHandles,
  id: string,
  work: (held: HeldLock, version: number, record: NodeRecord | RecordError) => Promise<T>,
): Promise<T> {
  const { tree } = handles;
  if (!/^\d{10}$/.test(id))
    throw new NodeOperationError(
      "operation.bad_node_id",
      `${JSON.stringify(id)} is not a node id: ten digits, as "nodeyard list" shows them`,
    );
  // Before the lock: locking would leave a ghost path for an id that never was (docs/contract/locks.md, "Ghost paths").
  if ((await tree.stat(paths.node(id))) === undefined) throw unknownNode(id);
  const held = await lockNode(handles, tree, id);
  try {
    const found = await orUndefined(tree.get(paths.node(id)));
    // A path that never had data is left by a locker that came too late.
    if (found === undefined || (found.data.length === 0 && found.stat.version === 0)) throw unknownNode(id);
    return await work(held, found.stat.version, decoded(id, found.data));
  } finally {
    await held.release();
  }
}

/** Any other error than an unreadable record is the caller's. */
function decoded(id: string, data: Uint8Array): NodeRecord | RecordError {
  try {
    return decodeNode(id, data);
  } catch (error) {
    if (error instanceof RecordError) return error;
    throw error;
  }
}

/** Deletes the record together with its lock in one commit, which fails when another client waits for the lock. */
async function removeRecord(
  { tree }: OperationHandles,
  id: string,
  { contender }: HeldLock,
  version: number,
): Promise<void> {
  try {
    await tree.commit([
      { op: "delete", path: contender },
      { op: "delete", path: paths.nodeLock(id) },
      { op: "delete", path: paths.node(id), version },
    ]);
  } catch (error) {
    if (error instanceof CommitFailed && error.reason.code === "tree.not_empty") throw nodeBusy(id, error);
    throw error;
  }
  await orUndefined(tree.delete(deadLetterPath(id)));
}

/** "parent-only": the lock's own folder may be missing, the node may not (docs/contract/locks.md, "Ghost paths"). */
async function lockNode({ clock, random }: OperationHandles, tree: Tree, id: string) {
  try {
    return await lock(tree, paths.nodeLock(id), {
      clock,
      random,
      createParent: "parent-only",
      deadlineMs: LOCK_WAIT_MS,
    });
  } catch (error) {
    if (error instanceof TreeError && error.code === "tree.no_node") throw unknownNode(id);
    if (error instanceof TreeError && error.code === "tree.lock_timeout") {
      throw nodeBusy(id, error);
    }
    throw error;
  }
}

/** The lock was not free in time, or another client waits for it. */
function nodeBusy(id: string, cause: unknown): NodeOperationError {
  return new NodeOperationError(
    "operation.node_busy",
    `node ${id} is locked by someone else for more than ${LOCK_WAIT_MS / 1000} s: "nodeyard explain ${id}" says who has it; if a launcher has it, try again later; if a client uses it, wait until the client returns it`,
    { cause },
  );
}

/** What an operation on a node says when its record cannot be read. */
export function unreadableNode(id: string, cause: RecordError): NodeOperationError {
  return new NodeOperationError(
    "operation.unreadable_node",
    `the record of node ${id} cannot be read (${cause.message}): repair it, or remove it with "nodeyard delete ${id}"`,
    { cause },
  );
}

/** The node changed its state while this call waited for its lock. */
function wrongState(id: string, from: NodeState, to: NodeState): NodeOperationError {
  return new NodeOperationError(
    "operation.wrong_state",
    `node ${id} is ${from} by now and cannot become ${to}; see "nodeyard explain ${id}"`,
  );
}

function unknownNode(id: string): NodeOperationError {
  return new NodeOperationError("operation.no_node", `there is no node ${id}; see "nodeyard list"`);
}
