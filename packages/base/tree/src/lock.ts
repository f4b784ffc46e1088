import { type Clock, deadline, type Random } from "@nodeyard/runtime";
import { contend, contenderPrefix, type LineClient, leave, type Place } from "@nodeyard/zookeeper";
import type { CallOptions, CheckOp, OpResult, Tree } from "./contract.ts";
import { CallEnded, CommitFailed, TreeError } from "./errors.ts";

/** Milliseconds that `lock` waits when the caller gives no deadline. */
const DEFAULT_WAIT_MS = 60_000;

interface ContendOptions {
  readonly random: Random;
  /** Data of the contender; people read it to see who holds the lock. Default: empty. */
  readonly identifier?: string;
  /** The contender outlives the session: only `release` deletes it. So its fence cannot show that the session was lost. */
  readonly durable?: boolean;
  /**
   * What to do when the lock parent is missing. "never": reject with NoNode. "parent-only": create that one znode, never the path
   * above it, because locking a deleted object must not create the object again (docs/contract/locks.md, "Ghost paths").
   */
  readonly createParent?: "never" | "parent-only";
}

/** Options for taking a lock without waiting. */
export interface TryLockOptions extends ContendOptions, CallOptions {
  /** The first broken connection ends the attempt, which rejects once its contender is deleted. Default: the attempt is repeated. */
  readonly once?: boolean;
}

/** Options for waiting for a lock; times in milliseconds. */
export interface LockOptions extends ContendOptions {
  readonly clock: Clock;
  /** Limit of the whole attempt; default 60,000. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

/** A lock that this process holds for as long as its contender exists. */
export interface HeldLock {
  readonly parent: string;
  /** Path of the contender. */
  readonly contender: string;
  /** Epoch of the contender's session. In another epoch the lock is lost, unless it is durable. */
  readonly epoch: number;
  /** As the first operation of a commit, it makes the commit fail when the lock is lost. */
  readonly fence: CheckOp;
  /** Releases the lock by deleting the contender, repeated when the connection breaks. A lock that is gone is no error. */
  release(options?: CallOptions): Promise<void>;
}

/** The lock did not become free before the deadline. The contender was deleted. */
export class LockTimeout extends TreeError {
  constructor(parent: string, ms: number) {
    super("tree.lock_timeout", `${parent} was not free within ${Math.round(ms)} ms`);
  }
}

/**
 * Takes a lock if it is free; otherwise returns undefined. Contenders have the names and the order of Nodepool's and Zuul's
 * locks, so all of these programs compete for the same lock.
 */
export function tryLock(tree: Tree, parent: string, options: TryLockOptions): Promise<HeldLock | undefined> {
  const { signal, deadlineMs } = options;
  const call = { ...(signal && { signal }), ...(deadlineMs !== undefined && { deadlineMs }) };
  return take(tree, parent, options, false, call);
}

/** Waits until the lock is free. Rejects with LockTimeout, or with CallEnded when `signal` aborts. */
export async function lock(tree: Tree, parent: string, options: LockOptions): Promise<HeldLock> {
  const { clock, deadlineMs = DEFAULT_WAIT_MS, signal } = options;
  const limit = deadline(clock, deadlineMs, () => new LockTimeout(parent, deadlineMs), signal);
  try {
    // Longer than the whole attempt, so that the attempt ends with LockTimeout, which names the lock, and not with the limit of one call.
    const call = { signal: limit.signal, deadlineMs: deadlineMs + 1_000 };
    return (await take(tree, parent, options, true, call))!;
  } catch (error) {
    const { reason } = limit.signal;
    if (!limit.signal.aborted) throw error;
    throw reason instanceof LockTimeout ? reason : new CallEnded(`lock ${parent}`, "none", reason);
  } finally {
    limit.cancel();
  }
}

async function take(
  tree: Tree,
  parent: string,
  options: ContendOptions & { readonly once?: boolean },
  patient: boolean,
  call: CallOptions,
): Promise<HeldLock | undefined> {
  const { random, identifier = "", durable = false, createParent, once = false } = options;
  const line = lineOf(tree);
  const entry = {
    parent,
    prefix: contenderPrefix(random.uuid()),
    data: Buffer.from(identifier),
    durable,
    createParent: createParent === "parent-only",
    once,
    doubtful: false,
  };
  const place = await contend(line, entry, patient, call);
  if (place === undefined) return undefined;
  const { id, epoch } = tree.session();
  // When the session has changed since, the contender belongs to the earlier epoch and the lock is lost.
  return heldLock(tree, parent, place.path, durable || place.owner === id ? epoch : epoch - 1, durable);
}

/** The lock whose first contender is ours. */
export function heldLock(
  tree: Tree,
  parent: string,
  contender: string,
  epoch: number,
  durable = false,
): HeldLock {
  return {
    parent,
    contender,
    epoch,
    fence: { op: "check", path: contender },
    release: (limits = {}) => leave(lineOf(tree), contender, limits, durable),
  };
}

/** Adapts a tree to what `contend` needs. */
export function lineOf(tree: Tree): LineClient {
  return {
    // An expired session still has its old id. With -1 no contender of it counts as ours.
    session: () => (tree.session().state === "expired" ? -1n : tree.session().id),
    create: (entry, withParent, call) => create(tree, entry, withParent, call),
    children: (path, call) => tree.children(path, call),
    owner: async (path, call) => (await tree.stat(path, call))?.ephemeralOwner,
    sync: (path, call) => tree.sync(path, call),
    delete: (path, call) => tree.delete(path, call),
    departure: (path, call) => departure(tree, path, call.signal),
  };
}

/** Creates a contender. With its parent in one commit it is the first in line: nobody could join a lock that did not exist. */
async function create(
  tree: Tree,
  { parent, prefix, data, durable }: Parameters<LineClient["create"]>[0],
  withParent: boolean,
  call: CallOptions,
): Promise<Place> {
  const path = `${parent}/${prefix}`;
  const options = { ephemeral: durable !== true, sequential: true };
  if (!withParent) {
    const made = await tree.create(path, data, { ...options, ...call });
    return { path: made.path, owner: made.stat.ephemeralOwner, fresh: false };
  }
  const ops = [
    { op: "create", path: parent },
    { op: "create", path, data, ...options },
  ] as const;
  const results = await tree.commit(ops, call).catch((error: unknown) => {
    // `contend` decides by the refusal itself, whether it came from a commit or from a single create.
    throw error instanceof CommitFailed ? error.reason : error;
  });
  const made = results[1] as Extract<OpResult, { op: "create" }>;
  return { path: made.path, owner: made.stat.ephemeralOwner, fresh: true };
}

/** Resolves when a contender is gone. A contender that is already gone never appears in the feed. */
async function departure(tree: Tree, path: string, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const { epoch } = tree.session();
  let stands = false;
  const feed = tree.feed(path, {
    interest: (at) => (at === path ? "name" : "none"),
    descend: () => false,
    onChange: ({ type }) => {
      if (type === "put") stands = true;
      else if (type === "remove" || (type === "synced" && !stands)) resolve();
    },
  });
  feed.synced.catch(reject);
  const unsubscribe = tree.onSession((session) => {
    if (session.epoch !== epoch || session.state === "closed") resolve();
  });
  const onAbort = () => reject(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  if (signal?.aborted) onAbort();
  try {
    await promise;
  } finally {
    unsubscribe();
    signal?.removeEventListener("abort", onAbort);
    await feed.close().catch(() => undefined);
  }
}
