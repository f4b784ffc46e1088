import { NoNode, type ZooKeeperError } from "../errors.ts";
import { contenderPrefix, sortContenders } from "./contenders.ts";
import { type Entry, isLate, isPassing, type Place } from "./entry.ts";
import { LockTimeout } from "./errors.ts";
import { type HeldLock, hold } from "./held-lock.ts";
import { Limit } from "./limit.ts";
import {
  clockOf,
  DEFAULT_LOCK_DEADLINE_MS,
  type LockOptions,
  type RecipeClient,
  randomOf,
} from "./options.ts";
import { enterLine } from "./place.ts";
import { leave, removalLimit } from "./removal.ts";

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
        await leave(client, entry, place, limit);
        return undefined;
      }
    }
  } catch (error) {
    // In the background: the caller's deadline has passed or may soon, and the contender must go even after it.
    leave(client, entry, place, removalLimit(clock, parent)).catch(() => undefined);
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

function isCurrent(client: RecipeClient, place: Place): boolean {
  return place.owner === 0n || (place.owner === client.session.id && client.session.state !== "expired");
}

function toBytes(identifier: string | Uint8Array | undefined): Uint8Array {
  if (identifier === undefined) return new Uint8Array(0);
  return typeof identifier === "string" ? new TextEncoder().encode(identifier) : identifier;
}
