import { type Clock, deadline, sleep } from "@nodeyard/runtime";
import { holderOf } from "@nodeyard/zookeeper";
import type { CallOptions, CheckOp, Tree } from "../contract.ts";
import { CallEnded } from "../errors.ts";
import { type Contender, type ContendOptions, contend, isHead, leave, persist } from "./contender.ts";
import { LockTimeout } from "./errors.ts";

const DEFAULT_WAIT_MS = 60_000;
/** How long an attempt that failed waits to see itself out of the line, ms. */
const DEPART_MS = 2_000;

export type TryLockOptions = ContendOptions & CallOptions;

export interface LockOptions extends ContendOptions {
  readonly clock: Clock;
  /** Limit for the whole attempt; default 60,000. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

/** A lock that is ours for as long as its contender stands. */
export interface HeldLock {
  readonly parent: string;
  /** Path of our contender. */
  readonly contender: string;
  /** Session epoch it belongs to: in another epoch it is gone (unless durable). */
  readonly epoch: number;
  /** Put first into a commit, it makes the commit fail when the lock is lost. */
  readonly fence: CheckOp;
  /** Leaves the line. Doing so twice is no error. */
  release(options?: CallOptions): Promise<void>;
}

/**
 * Takes a lock if it is free; undefined when someone else has it. Names and order of the line are those of Nodepool's and
 * Zuul's locks, which therefore queue in the same line.
 */
export async function tryLock(
  tree: Tree,
  parent: string,
  options: TryLockOptions,
): Promise<HeldLock | undefined> {
  const { signal, deadlineMs } = options;
  const call: CallOptions = {
    ...(signal === undefined ? {} : { signal }),
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
  };
  const contender = await contend(tree, parent, options, call);
  if (contender.fresh) return held(tree, parent, contender);
  let head: boolean | undefined;
  try {
    head = await persist(() => isHead(tree, parent, contender.path, call));
  } catch (error) {
    void leave(tree, contender.path, {}).catch(() => undefined);
    throw error;
  }
  if (head) return held(tree, parent, contender);
  await leave(tree, contender.path, call);
  return undefined;
}

/** Waits for a lock, woken by the line itself. Rejects with LockTimeout, or with CallEnded when `signal` aborts. */
export async function lock(tree: Tree, parent: string, options: LockOptions): Promise<HeldLock> {
  const { clock, deadlineMs = DEFAULT_WAIT_MS, signal } = options;
  const limit = deadline(clock, deadlineMs, () => new LockTimeout(parent, deadlineMs), signal);
  const call: CallOptions = { signal: limit.signal, deadlineMs: deadlineMs + 1_000 };
  let contender: Contender | undefined;
  try {
    for (;;) {
      contender = await contend(tree, parent, options, call);
      if (contender.fresh || (await turn(tree, parent, contender, limit.signal)))
        return held(tree, parent, contender);
    }
  } catch (error) {
    if (contender !== undefined) await depart(tree, contender.path, clock);
    const { reason } = limit.signal;
    if (!limit.signal.aborted) throw error;
    throw reason instanceof LockTimeout ? reason : new CallEnded(`lock ${parent}`, "none", reason);
  } finally {
    limit.cancel();
  }
}

/** Leaves the line; where the connection is gone that goes on behind the caller's back. */
async function depart(tree: Tree, contender: string, clock: Clock): Promise<void> {
  const left = leave(tree, contender, {}).catch(() => undefined);
  const patience = new AbortController();
  await Promise.race([left, sleep(clock, DEPART_MS, patience.signal).catch(() => undefined)]);
  patience.abort();
}

/** Waits until a contender is first; false when it left the line, with its session or by another's hand. */
async function turn(tree: Tree, parent: string, contender: Contender, signal: AbortSignal): Promise<boolean> {
  const own = contender.path.slice(parent.length + 1);
  const names = new Set<string>();
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  let whole = false;
  const judge = () => {
    if (!whole) return;
    if (!names.has(own)) resolve(false);
    else if (holderOf(names) === own) resolve(true);
  };
  const feed = tree.feed(parent, {
    interest: (path) => (path.lastIndexOf("/") === parent.length ? "name" : "none"),
    descend: (path) => path === parent,
    onChange: (change) => {
      if (change.type === "gap") whole = false;
      else if (change.type === "synced") whole = true;
      else if (change.type === "put") names.add(change.path.slice(parent.length + 1));
      else names.delete(change.path.slice(parent.length + 1));
      judge();
    },
  });
  const onAbort = () => reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  feed.synced.catch(reject);
  try {
    return await promise;
  } finally {
    signal.removeEventListener("abort", onAbort);
    await feed.close().catch(() => undefined);
  }
}

function held(tree: Tree, parent: string, { path, epoch }: Contender): HeldLock {
  return {
    parent,
    contender: path,
    epoch,
    fence: { op: "check", path },
    release: (options = {}) => leave(tree, path, options),
  };
}
