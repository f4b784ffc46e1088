import { ConnectionLost, DeadlineExceeded, NoNode, SessionExpired, SessionMoved } from "../errors.ts";
import type { OpOptions, ZooKeeperClient } from "../types.ts";

/** A contender of ours in the line of a lock. */
export interface Place {
  readonly name: string;
  readonly path: string;
  /** Session that the contender ends with; 0n for a persistent one. */
  readonly owner: bigint;
}

/** What stays the same over all tries of one attempt. */
export interface Entry {
  readonly parent: string;
  /** `<32 hex>__lock__`: whoever lost a reply finds his contender by it. */
  readonly prefix: string;
  readonly data: Uint8Array;
  readonly persistent: boolean;
  readonly createParent: boolean;
  /** Set when a create may have left a contender that we have not seen. */
  doubtful: boolean;
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

/** Errors after which the next try waits for a connection by itself. */
export function isPassing(error: unknown): boolean {
  return error instanceof ConnectionLost || error instanceof SessionExpired || error instanceof SessionMoved;
}

/** The operation's deadline was what was left of the whole attempt. */
export function isLate(error: unknown): boolean {
  return error instanceof DeadlineExceeded;
}
