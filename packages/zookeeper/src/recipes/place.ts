import { NodeExists, NoNode, ZooKeeperError } from "../errors.ts";
import type { OpOptions, ZooKeeperClient } from "../types.ts";
import { type Entry, isPassing, ownContenders, type Place } from "./entry.ts";
import type { Limit } from "./limit.ts";

/** Puts a contender into the line, or finds the one that an earlier try has put there unnoticed. */
export async function enterLine(client: ZooKeeperClient, entry: Entry, limit: Limit): Promise<Place> {
  for (;;) {
    try {
      if (entry.doubtful) {
        const adopted = await adopt(client, entry, limit.options());
        if (adopted !== undefined) return adopted;
      }
      return await create(client, entry, limit.options());
    } catch (error) {
      if (error instanceof ZooKeeperError && error.outcome === "unknown") entry.doubtful = true;
      if (isMissing(error, entry)) await createParent(client, entry, limit);
      else if (!isPassing(error)) throw error;
    }
  }
}

async function create(client: ZooKeeperClient, entry: Entry, options: OpOptions): Promise<Place> {
  const { path, stat } = await client.create(`${entry.parent}/${entry.prefix}`, entry.data, {
    ...options,
    ephemeral: !entry.persistent,
    sequential: true,
  });
  return { path, name: path.slice(path.lastIndexOf("/") + 1), owner: stat.ephemeralOwner };
}

/** A contender of an earlier session of ours is about to vanish and no place to hold. */
async function adopt(client: ZooKeeperClient, entry: Entry, options: OpOptions): Promise<Place | undefined> {
  for (const name of await ownContenders(client, entry.parent, entry.prefix, options)) {
    const path = `${entry.parent}/${name}`;
    const stat = await client.exists(path, options);
    if (stat === undefined) continue;
    if (entry.persistent || stat.ephemeralOwner === client.session.id) {
      return { path, name, owner: stat.ephemeralOwner };
    }
  }
  return undefined;
}

function isMissing(error: unknown, entry: Entry): boolean {
  return error instanceof NoNode && entry.createParent;
}

async function createParent(client: ZooKeeperClient, entry: Entry, limit: Limit): Promise<void> {
  try {
    await client.create(entry.parent, new Uint8Array(0), limit.options());
  } catch (error) {
    if (!(error instanceof NodeExists || isPassing(error))) throw error;
  }
}
