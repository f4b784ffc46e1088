import { DeadlineExceeded, NoNode } from "../errors.ts";
import type { Clock, OpOptions, ZooKeeperClient } from "../types.ts";
import { type Entry, isPassing, ownContenders, type Place } from "./entry.ts";
import { Limit } from "./limit.ts";

/** How long a contender that nobody wants any more is chased while the connection fails. */
const CLEAN_UP_MS = 120_000;

/** The limit of a removal that has one of its own, and not that of the attempt which it ends. */
export function removalLimit(clock: Clock, parent: string, ms: number = CLEAN_UP_MS): Limit {
  return new Limit(
    clock,
    ms,
    undefined,
    parent,
    () => new DeadlineExceeded(ms, { op: "release", path: parent }),
  );
}

/** Repeats `once` while the connection breaks under it. */
async function insist(limit: Limit, once: (options: OpOptions) => Promise<void>): Promise<void> {
  for (;;) {
    try {
      // Operations wait in the client while it is disconnected, so this loop turns once per connection at most.
      await once(limit.options());
      return;
    } catch (error) {
      if (!isPassing(error)) throw error;
    }
  }
}

/** Takes us out of the line, over broken connections; what is gone already is no error. */
export async function leave(
  client: ZooKeeperClient,
  entry: Entry,
  place: Place | undefined,
  limit: Limit,
): Promise<void> {
  if (entry.doubtful) await sweepContenders(client, entry.parent, entry.prefix, limit);
  else if (place !== undefined) await removeContender(client, place.path, limit);
}

function removeContender(client: ZooKeeperClient, path: string, limit: Limit): Promise<void> {
  return insist(limit, (options) => client.delete(path, options).catch(ignoreNoNode));
}

/** Deletes every contender whose name starts with `prefix`: what a create of unknown outcome may have left. */
function sweepContenders(
  client: ZooKeeperClient,
  parent: string,
  prefix: string,
  limit: Limit,
): Promise<void> {
  return insist(limit, async (options) => {
    const names = await ownContenders(client, parent, prefix, options);
    await Promise.all(names.map((name) => client.delete(`${parent}/${name}`, options).catch(ignoreNoNode)));
  });
}

function ignoreNoNode(error: unknown): void {
  if (!(error instanceof NoNode)) throw error;
}
