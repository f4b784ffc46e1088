import {
  decodeLease,
  decodeNode,
  decodeRequest,
  LEASES,
  type Lease,
  leasePath,
  type NodeFields,
  type NodeRecord,
  paths,
  type Remark,
  type RequestRecord,
  readableNode,
} from "@nodeyard/model";
import { orUndefined } from "@nodeyard/tree";
import { listDeadLetters } from "./dead-letter.ts";
import type { OperationHandles } from "./handles.ts";

/** A node with what its record does not say itself. */
export interface ListedNode {
  readonly record: NodeRecord;
  /** Whether anybody has or wants its lock. A hint only: it may change at once. */
  readonly locked: boolean;
  /** Its machine could not be deleted in many tries; an operator has to help. */
  readonly deadLetter: boolean;
  /** What its driver last said of its machine; undefined: nothing, or it was not read. */
  readonly remark?: Remark | undefined;
}

/** Records of one kind that were read from the tree. */
export interface Listing<T> {
  readonly items: readonly T[];
  /** Records that make no sense, by path: shown apart, and never a reason to show nothing. */
  readonly skipped: readonly { readonly path: string; readonly why: string }[];
}

/** A node that exists, and whose record cannot be read. */
export interface UnreadableNode {
  readonly id: string;
  readonly path: string;
  readonly why: string;
  /** The fields that can be read; empty where not even the JSON can. */
  readonly known: Partial<NodeFields>;
}

/**
 * All nodes by id, read from the tree itself. A lock is anything under the node's lock; nothing is created by looking. Two reads for each node, all at once.
 */
export async function listNodes(
  handles: OperationHandles,
): Promise<{ readonly items: readonly ListedNode[]; readonly skipped: readonly UnreadableNode[] }> {
  const { tree } = handles;
  const letters = await listDeadLetters(handles);
  const known = new Map<string, Partial<NodeFields>>();
  const { items, skipped } = await readAll(tree, paths.nodes, async (id, data) => {
    try {
      return { record: decodeNode(id, data), locked: await isLocked(tree, id), deadLetter: letters.has(id) };
    } catch (error) {
      known.set(id, readableNode(data));
      throw error;
    }
  });
  const unreadable = skipped.map(({ path, why }): UnreadableNode => {
    const id = path.slice(path.lastIndexOf("/") + 1);
    return { id, path, why, known: known.get(id) ?? {} };
  });
  return { items, skipped: unreadable };
}

/** One node as `listNodes` has it; undefined when there is none. */
export async function listedNode(handles: OperationHandles, id: string): Promise<ListedNode | undefined> {
  const record = await readNode(handles, id);
  if (record === undefined) return undefined;
  const deadLetter = (await listDeadLetters(handles)).has(id);
  return { record, locked: await isLocked(handles.tree, id), deadLetter };
}

/**
 * The id of the youngest node there is, or "" when there is none. Ids are sequence numbers of one counter, so a later node is
 * greater.
 */
export async function youngestNode({ tree }: Pick<OperationHandles, "tree">): Promise<string> {
  const ids = (await orUndefined(tree.children(paths.nodes))) ?? [];
  return [...ids].sort().at(-1) ?? "";
}

/** Whether the lock's folder has a contender. A folder that does not exist has none. */
async function isLocked(tree: OperationHandles["tree"], id: string): Promise<boolean> {
  return ((await orUndefined(tree.children(paths.nodeLock(id)))) ?? []).length > 0;
}

/** All node requests, of whatever requestor. */
export async function listRequests({ tree }: OperationHandles): Promise<Listing<RequestRecord>> {
  return readAll(tree, paths.requests, decodeRequest);
}

/** All leases, including those that wait for nodes. */
export async function listLeases({ tree }: OperationHandles): Promise<Listing<Lease>> {
  return readAll(tree, LEASES, decodeLease);
}

/** A lease; undefined: there is none. Rejects with RecordError when it cannot be read; so do the next two. */
export function readLease({ tree }: OperationHandles, id: string): Promise<Lease | undefined> {
  return readOne(tree, leasePath(id), (data) => decodeLease(id, data));
}

/** A node's record; undefined: it does not exist. Rejects with RecordError when it cannot be read. */
export function readNode({ tree }: OperationHandles, id: string): Promise<NodeRecord | undefined> {
  return readOne(tree, paths.node(id), (data) => decodeNode(id, data));
}

/** A node request; undefined: there is none. */
export function readRequest({ tree }: OperationHandles, id: string): Promise<RequestRecord | undefined> {
  return readOne(tree, paths.request(id), (data) => decodeRequest(id, data));
}

async function readOne<T>(
  tree: OperationHandles["tree"],
  path: string,
  decode: (data: Uint8Array) => T,
): Promise<T | undefined> {
  const found = await orUndefined(tree.get(path));
  return found === undefined ? undefined : decode(found.data);
}

/**
 * All records beneath `root`, by name, and separately those that cannot be read. A record that is deleted meanwhile is left out.
 * Never rejects because of a single record.
 */
export async function readAll<T>(
  tree: OperationHandles["tree"],
  root: string,
  read: (id: string, data: Uint8Array) => T | Promise<T>,
): Promise<Listing<T>> {
  const ids = [...((await orUndefined(tree.children(root))) ?? [])].sort();
  const skipped: { path: string; why: string }[] = [];
  const items = await Promise.all(
    ids.map(async (id) => {
      const found = await orUndefined(tree.get(`${root}/${id}`));
      // A path that never had data is left by a locker that came too late.
      if (found === undefined || (found.data.length === 0 && found.stat.version === 0)) return undefined;
      try {
        return await read(id, found.data);
      } catch (error) {
        skipped.push({ path: `${root}/${id}`, why: (error as Error).message });
        return undefined;
      }
    }),
  );
  return { items: items.filter((item) => item !== undefined), skipped };
}
