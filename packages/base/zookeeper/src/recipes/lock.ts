import type { ZooKeeper } from "../client/zookeeper.ts";
import { Aborted, Closed, type ErrorDetails, NoNode, ZooKeeperError } from "../errors.ts";
import type { Clock, Status } from "../types.ts";
import { contenderPrefix } from "./contenders.ts";
import { contend, type Entry, type LineCall, type LineClient, leave, type Place } from "./line.ts";

const DEFAULT_DEADLINE_MS = 60_000;
/** Twelve days. Node fires a timer of more than 2^31-1 ms (25 days) at once. */
const LONGEST_TIMER_MS = 2 ** 30;

/** How a lock is contended for, and for how long. */
export interface LockOptions {
  /** Data of the contender; people read it to see who holds the lock. Default: empty. */
  readonly identifier?: string | Uint8Array;
  /** Creates a contender that outlives its session: it stays until a client deletes it. Default false. */
  readonly persistent?: boolean;
  /**
   * What to do when the lock parent is missing. "never": reject with NoNode. "parent-only": create the lock parent itself,
   * and reject with NoNode when the path above it is missing too, because locking a deleted object must not create it
   * again as an empty znode (docs/contract/locks.md, "Ghost paths"). Default "never".
   */
  readonly createParent?: "never" | "parent-only";
  /**
   * Time from the call until the attempt ends with LockTimeout, all waits and retries included. Default 60,000; Infinity
   * is allowed.
   */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

/** A lock that this client holds. Exclusive, not re-entrant. */
export interface HeldLock extends AsyncDisposable {
  /** Path of the contender. A `check` of this path in a multi makes the multi fail once the lock is lost. */
  readonly path: string;
  /** Aborts with LockLost when the session of an ephemeral contender ends before `release`. */
  readonly lost: AbortSignal;
  /**
   * Releases the lock, retrying over broken connections. A contender that no longer exists is no error. May be called
   * again after it has failed.
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

/** The reason of `HeldLock.lost`: the contender's session ended, so another client may hold the lock. */
export class LockLost extends ZooKeeperError {
  constructor(contender: string, details: ErrorDetails = {}) {
    super("zookeeper.lock_lost", `lock ${contender}: its session is over`, { ...details, path: contender });
  }
}

/**
 * Takes the lock under `parent` if it is free now; otherwise returns undefined. The protected object may have changed or
 * vanished since the caller last read it: read it again after winning, and release the lock when the object is gone.
 */
export function tryLock(
  client: ZooKeeper,
  parent: string,
  options: LockOptions = {},
): Promise<HeldLock | undefined> {
  return take(client, parent, options, false);
}

/** Waits until this client holds the lock under `parent`. */
export async function lock(client: ZooKeeper, parent: string, options: LockOptions = {}): Promise<HeldLock> {
  return (await take(client, parent, options, true))!;
}

/** Both public functions. `patient`: wait for the lock; otherwise undefined means that another client holds it. */
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
    data: typeof identifier === "string" ? Buffer.from(identifier) : identifier,
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

/** Adapts this client to what `contend` needs. */
export function lineOf(client: ZooKeeper): LineClient {
  return {
    session: () => (client.session.state === "expired" ? -1n : client.session.id),
    create: async ({ parent, prefix, data, durable }, withParent, call) => {
      // Not in one multi: servers answer the creates of a multi without a Stat, so the owner of the contender would be unknown.
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

/** Resolves when the znode is gone. It reads the data, because an exists watch on a znode that is already gone would never fire. */
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

/** Makes the handle of a lock whose contender is first. */
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
      // Closing the client ends the session, and the server deletes the contender with the session.
      if (error instanceof Closed && owner !== 0n) return;
      throw error;
    });
    return released;
  }
  return { path, lost: controller.signal, release, [Symbol.asyncDispose]: release };
}

/** One deadline and one signal for a sequence of operations and waits; `ms` may be Infinity. */
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
