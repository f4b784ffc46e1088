import type { Clock, Random } from "@nodeyard/runtime";
import type { Tree } from "../contract.ts";
import { socketPath } from "../embedded/index.ts";
import { connectZooKeeperTree } from "../zookeeper/index.ts";
import { reachable, unixConnector } from "./edge/unix-connector.ts";
import { NotServed } from "./errors.ts";

/** How a process joins the tree that another process of the same machine has open. */
export interface AttachOptions {
  /** The state folder of the installation. */
  readonly folder: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Default 10,000. */
  readonly sessionTimeoutMs?: number;
}

/**
 * Opens a session with the tree of a state folder from another process (the CLI first), through the socket that its
 * owner serves: the same client path as to a ZooKeeper. Rejects with `NotServed` at once when nobody serves it.
 */
export async function attachEmbeddedTree(options: AttachOptions): Promise<Tree> {
  const { folder, clock, random, sessionTimeoutMs } = options;
  const path = socketPath(folder);
  const failure = await reachable(path);
  if (failure !== undefined) throw new NotServed(folder, failure);
  return connectZooKeeperTree({
    // The connector knows the way; the name only shows in messages.
    servers: "localhost",
    connector: unixConnector(path),
    clock,
    random,
    resyncSpreadMs: 0,
    ...(sessionTimeoutMs !== undefined && { sessionTimeoutMs }),
  });
}
