import { ConnectionLost, DeadlineExceeded, NoNode, SessionExpired } from "../errors.ts";
import type { Clock, OpOptions, ZooKeeperClient } from "../types.ts";
import { CLEAN_UP_MS } from "./options.ts";

/** Repeats `once` while the connection breaks under it, until `deadlineMs` have passed. */
async function insist(
  clock: Clock,
  deadlineMs: number,
  once: (options: OpOptions) => Promise<void>,
): Promise<void> {
  const end = clock.monotonic() + deadlineMs;
  for (;;) {
    const left = end - clock.monotonic();
    if (left <= 0) throw new DeadlineExceeded(deadlineMs, { op: "delete" });
    try {
      // Operations wait in the client while it is disconnected, so this loop turns once per connection at most.
      await once({ deadlineMs: left });
      return;
    } catch (error) {
      if (!(error instanceof ConnectionLost || error instanceof SessionExpired)) throw error;
    }
  }
}

/** Deletes a contender, over broken connections; one that is gone already is no error. */
export function removeContender(
  client: ZooKeeperClient,
  clock: Clock,
  path: string,
  deadlineMs: number = CLEAN_UP_MS,
): Promise<void> {
  return insist(clock, deadlineMs, (options) => client.delete(path, options).catch(ignoreNoNode));
}

/** Deletes every contender whose name starts with `prefix`: what a create of unknown outcome may have left. */
export function sweepContenders(
  client: ZooKeeperClient,
  clock: Clock,
  parent: string,
  prefix: string,
  deadlineMs: number = CLEAN_UP_MS,
): Promise<void> {
  return insist(clock, deadlineMs, async (options) => {
    const names = await ownContenders(client, parent, prefix, options);
    await Promise.all(names.map((name) => client.delete(`${parent}/${name}`, options).catch(ignoreNoNode)));
  });
}

/** Names below `parent` that start with `prefix`, once this server has seen all that was sent before. */
export async function ownContenders(
  client: ZooKeeperClient,
  parent: string,
  prefix: string,
  options: OpOptions,
): Promise<string[]> {
  await client.sync(parent, options);
  try {
    const { children } = await client.children(parent, options);
    return children.filter((name) => name.startsWith(prefix)).sort();
  } catch (error) {
    if (error instanceof NoNode) return [];
    throw error;
  }
}

function ignoreNoNode(error: unknown): void {
  if (!(error instanceof NoNode)) throw error;
}
