import { Closed, NoNode, type ZooKeeperError } from "../errors.ts";
import type { Clock, Status } from "../types.ts";
import { contenderPrefix, sortContenders } from "./contenders.ts";
import { LockLost, LockTimeout } from "./errors.ts";
import { Limit } from "./limit.ts";
import {
  clockOf,
  DEFAULT_LOCK_DEADLINE_MS,
  type LockOptions,
  type RecipeClient,
  randomOf,
} from "./options.ts";
import { type Entry, enterLine, isLate, isPassing, type Place } from "./place.ts";
import { removeContender, sweepContenders } from "./removal.ts";

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
  release(options?: { readonly deadlineMs?: number }): Promise<void>;
}

/**
 * The lock under `parent` if it is free now, otherwise undefined. What it protects may have changed or gone since it
 * was last read: read it anew after winning, and release at once when it is gone.
 */
export function tryLock(
  client: RecipeClient,
  parent: string,
  options: LockOptions = {},
): Promise<HeldLock | undefined> {
  return contend(client, parent, options, false);
}

/** Waits in the line under `parent` until the lock is ours. */
export async function lock(
  client: RecipeClient,
  parent: string,
  options: LockOptions = {},
): Promise<HeldLock> {
  const held = await contend(client, parent, options, true);
  return held!;
}

async function contend(
  client: RecipeClient,
  parent: string,
  options: LockOptions,
  patient: boolean,
): Promise<HeldLock | undefined> {
  const clock = clockOf(client, options);
  const ms = options.deadlineMs ?? DEFAULT_LOCK_DEADLINE_MS;
  const limit = new Limit(clock, ms, options.signal, parent, () => new LockTimeout(parent, ms));
  const entry: Entry = {
    parent,
    prefix: contenderPrefix(randomOf(client, options).uuid()),
    data: toBytes(options.identifier),
    persistent: options.persistent ?? false,
    createParent: options.createParent === "parent-only",
    doubtful: false,
  };
  let place: Place | undefined;
  try {
    for (;;) {
      place ??= await enterLine(client, entry, limit);
      const before = await predecessor(client, entry.parent, place, limit);
      if (before === "absent") {
        place = undefined;
      } else if (before === "none") {
        if (isCurrent(client, place)) return hold(client, clock, entry, place);
        place = undefined;
      } else if (patient) {
        await departure(client, `${parent}/${before.name}`, limit);
      } else {
        await leave(client, clock, entry, place);
        return undefined;
      }
    }
  } catch (error) {
    // In the background: the caller's deadline has passed or may soon, and the contender must go even after it.
    leave(client, clock, entry, place).catch(() => undefined);
    throw isLate(error) ? new LockTimeout(parent, ms, error) : error;
  }
}

/** The contender right before `place`; "none" when it is first, "absent" when it is not in the line any more. */
async function predecessor(
  client: RecipeClient,
  parent: string,
  place: Place,
  limit: Limit,
): Promise<{ readonly name: string } | "none" | "absent"> {
  for (;;) {
    try {
      const { children } = await client.children(parent, limit.options());
      const line = sortContenders(children);
      const index = line.findIndex(({ name }) => name === place.name);
      if (index < 0) return "absent";
      return index === 0 ? "none" : line[index - 1]!;
    } catch (error) {
      if (error instanceof NoNode) return "absent";
      if (!isPassing(error)) throw error;
    }
  }
}

/** Returns when the contender at `path` is gone or changed, or when the session is another. */
async function departure(client: RecipeClient, path: string, limit: Limit): Promise<void> {
  await limit.wait((wake, fail) => {
    // A read of the data, since an exists watch on a znode that is gone already would stay for ever.
    client.get(path, { ...limit.options(), watch: wake }).catch((error: ZooKeeperError) => {
      if (error instanceof NoNode || isPassing(error)) wake();
      else fail(error);
    });
  });
}

async function leave(
  client: RecipeClient,
  clock: Clock,
  entry: Entry,
  place?: Place,
  ms?: number,
): Promise<void> {
  if (entry.doubtful) await sweepContenders(client, clock, entry.parent, entry.prefix, ms);
  else if (place !== undefined) await removeContender(client, clock, place.path, ms);
}

function isCurrent(client: RecipeClient, place: Place): boolean {
  return place.owner === 0n || (place.owner === client.session.id && client.session.state !== "expired");
}

function hold(client: RecipeClient, clock: Clock, entry: Entry, place: Place): HeldLock {
  const controller = new AbortController();
  const onStatus = (status: Status) => {
    const over = status.state === "expired" || status.state === "closed" || status.sessionId !== place.owner;
    if (!over) return;
    unsubscribe();
    controller.abort(new LockLost(place.path, { cause: status.cause }));
  };
  const unsubscribe = place.owner === 0n ? () => undefined : client.onStatus(onStatus);
  let released: Promise<void> | undefined;

  function release(options: { readonly deadlineMs?: number } = {}): Promise<void> {
    unsubscribe();
    released ??= leave(client, clock, entry, place, options.deadlineMs).catch((error: unknown) => {
      released = undefined;
      // The session ends with its client, and the contender with the session.
      if (error instanceof Closed && place.owner !== 0n) return;
      throw error;
    });
    return released;
  }
  return { path: place.path, lost: controller.signal, release, [Symbol.asyncDispose]: () => release() };
}

function toBytes(identifier: string | Uint8Array | undefined): Uint8Array {
  if (identifier === undefined) return new Uint8Array(0);
  return typeof identifier === "string" ? new TextEncoder().encode(identifier) : identifier;
}
