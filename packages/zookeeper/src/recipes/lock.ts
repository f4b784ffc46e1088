import type { ZooKeeper } from "../client/zookeeper.ts";
import { Aborted, Closed, type ErrorDetails, NoNode, ZooKeeperError } from "../errors.ts";
import type { Clock, Status } from "../types.ts";
import { contenderPrefix } from "./contenders.ts";
import { contend, type Entry, type LineCall, type LineClient, leave, type Place } from "./line.ts";

const DEFAULT_DEADLINE_MS = 60_000;
/** Twelve days. Timers of more than twice that overflow in Node and fire at once. */
const LONGEST_TIMER_MS = 2 ** 30;

/** How a lock is contended for, and for how long. */
export interface LockOptions {
  /** Data of the contender, which tells people who holds the lock. Default: empty. */
  readonly identifier?: string | Uint8Array;
  /** A contender that outlives its session, until somebody deletes it. Default false. */
  readonly persistent?: boolean;
  /**
   * What to do when the lock parent is missing. "never": reject with NoNode. "parent-only": create the lock parent
   * itself, and reject with NoNode when the path above it is missing too: locking what is gone must not bring it back
   * as an empty ghost. Default "never".
   */
  readonly createParent?: "never" | "parent-only";
  /**
   * Time from now until the attempt is given up with LockTimeout, all waits and retries included. Default 60,000;
   * Infinity is allowed.
   */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

/** A lock that we won. Exclusive, not re-entrant. */
export interface HeldLock extends AsyncDisposable {
  /** Path of our contender: a `check` of it in a multi fences what else the multi writes. */
  readonly path: string;
  /** Aborts, with a LockLost, when the session of an ephemeral contender ends before `release`. */
  readonly lost: AbortSignal;
  /**
   * Gives the lock back, over broken connections; a contender that is gone already is no error. May be called again
   * after it has failed.
   */
  release(): Promise<void>;
}

/** The lock was not won before the deadline. */
export class LockTimeout extends ZooKeeperError {
  constructor(parent: string, ms: number) {
    super("zookeeper.lock_timeout", `lock ${parent}: not won within ${Math.round(ms)} ms`, {
      op: "lock",
      path: parent,
    });
  }
}

/** Reason of a held lock's `lost` signal: the session of its contender ended, so another client may hold the lock. */
export class LockLost extends ZooKeeperError {
  constructor(contender: string, details: ErrorDetails = {}) {
    super("zookeeper.lock_lost", `lock ${contender}: its session is over`, { ...details, path: contender });
  }
}

/**
 * The lock under `parent` if it is free now, otherwise undefined. What it protects may have changed or gone since it
 * was last read: read it anew after winning, and release at once when it is gone.
 */
export function tryLock(
  client: ZooKeeper,
  parent: string,
  options: LockOptions = {},
): Promise<HeldLock | undefined> {
  return take(client, parent, options, false);
}

/** Waits in the line under `parent` until the lock is ours. */
export async function lock(client: ZooKeeper, parent: string, options: LockOptions = {}): Promise<HeldLock> {
  return (await take(client, parent, options, true))!;
}

async function take(
  client: ZooKeeper,
  parent: string,
  options: LockOptions,
  patient: boolean,
): Promise<HeldLock | undefined> {
  const { identifier = "", persistent = false, deadlineMs = DEFAULT_DEADLINE_MS } = options;
  const limit = limitOf(client.clock, deadlineMs, () => new LockTimeout(parent, deadlineMs), options.signal);
  const entry: Entry = {
    parent,
    prefix: contenderPrefix(client.random.uuid()),
    data: typeof identifier === "string" ? new TextEncoder().encode(identifier) : identifier,
    durable: persistent,
    createParent: options.createParent === "parent-only",
    doubtful: false,
  };
  const line = lineOf(client);
  const call = { signal: limit.signal, deadlineMs: Math.min(deadlineMs + 1_000, LONGEST_TIMER_MS) };
  try {
    const place = await contend(line, entry, patient, call);
    return place && hold(client, line, place);
  } catch (error) {
    if (!limit.signal.aborted) throw error;
    const { reason } = limit.signal;
    throw reason instanceof LockTimeout ? reason : new Aborted({ op: "lock", path: parent, cause: reason });
  } finally {
    limit.end();
  }
}

/** A line of locks on this client. */
export function lineOf(client: ZooKeeper): LineClient {
  return {
    session: () => (client.session.state === "expired" ? -1n : client.session.id),
    create: async ({ parent, prefix, data, durable }, withParent, call) => {
      // Not in one multi: servers answer its creates without a Stat, so it would not tell whose the contender is.
      if (withParent) await client.create(parent, undefined, call);
      const options = { ...call, ephemeral: durable !== true, sequential: true };
      const { path, stat } = await client.create(`${parent}/${prefix}`, data, options);
      return { path, owner: stat.ephemeralOwner, fresh: false };
    },
    children: async (path, call) => (await client.children(path, call)).children,
    owner: async (path, call) => (await client.exists(path, call))?.ephemeralOwner,
    sync: (path, call) => client.sync(path, call),
    delete: (path, call) => client.delete(path, call),
    departure: (path, call) => departure(client, path, call),
  };
}

/** A read of the data, since an exists watch on a znode that is gone already would stay for ever. */
function departure(client: ZooKeeper, path: string, call: LineCall): Promise<void> {
  const { signal } = call;
  return new Promise<void>((resolve, reject) => {
    const onAbort = () => end(() => reject(signal?.reason));
    const end = (settle: () => void) => {
      signal?.removeEventListener("abort", onAbort);
      settle();
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    client.get(path, { ...call, watch: () => end(resolve) }).catch((error: ZooKeeperError) => {
      const interrupted = [
        "zookeeper.connection_lost",
        "zookeeper.session_expired",
        "zookeeper.session_moved",
      ];
      if (error instanceof NoNode || interrupted.includes(error.code)) end(resolve);
      else end(() => reject(error));
    });
  });
}

/** The handle of a lock whose contender is first in the line. */
function hold(client: ZooKeeper, line: LineClient, { path, owner }: Place): HeldLock {
  const controller = new AbortController();
  const onStatus = ({ state, sessionId, cause }: Status) => {
    if (state !== "expired" && state !== "closed" && sessionId === owner) return;
    unsubscribe();
    controller.abort(new LockLost(path, { cause }));
  };
  const unsubscribe = owner === 0n ? () => undefined : client.onStatus(onStatus);
  let released: Promise<void> | undefined;
  function release(): Promise<void> {
    unsubscribe();
    released ??= leave(line, path, {}, owner === 0n).catch((error: unknown) => {
      released = undefined;
      // The session ends with its client, and the contender with the session.
      if (error instanceof Closed && owner !== 0n) return;
      throw error;
    });
    return released;
  }
  return { path, lost: controller.signal, release, [Symbol.asyncDispose]: release };
}

/** One deadline and one signal for a whole sequence of operations and waits; `ms` may be Infinity. */
function limitOf(
  clock: Clock,
  ms: number,
  late: () => Error,
  parent: AbortSignal | undefined,
): { readonly signal: AbortSignal; end(): void } {
  const controller = new AbortController();
  const timer = ms < LONGEST_TIMER_MS ? clock.setTimer(ms, () => controller.abort(late())) : undefined;
  const signal = parent === undefined ? controller.signal : AbortSignal.any([controller.signal, parent]);
  return { signal, end: () => timer?.cancel() };
}
