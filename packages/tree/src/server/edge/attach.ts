import { connect } from "node:net";
import { UnixConnector } from "@nodeyard/zookeeper";
import type { Tree } from "../../contract.ts";
import { socketPath } from "../../embedded/index.ts";
import { connectZooKeeperTree, type ZooKeeperTreeOptions } from "../../zookeeper/index.ts";
import { NotServed } from "../errors.ts";

/** How a process joins the tree that another process of the same machine has open. */
export interface AttachOptions extends Omit<ZooKeeperTreeOptions, "servers" | "chroot" | "connector"> {
  /** The state folder of the installation. */
  readonly folder: string;
}

/**
 * Opens a session with the tree of a state folder from another process (the CLI first), through the socket that its
 * owner serves: the same client path as to a ZooKeeper. Rejects with `NotServed` at once when nobody serves it.
 */
export async function attachEmbeddedTree({ folder, ...options }: AttachOptions): Promise<Tree> {
  const path = socketPath(folder);
  const failure = await reachable(path);
  if (failure !== undefined) throw new NotServed(folder, failure);
  // The connector knows the way; the name only shows in messages.
  const at = { servers: "localhost", connector: new UnixConnector(path), resyncSpreadMs: 0 };
  return connectZooKeeperTree({ ...at, ...options });
}

/** Resolves with nothing when somebody listens on the socket, with the reason when nobody does. */
function reachable(path: string): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once("error", resolve);
    socket.once("connect", () => {
      socket.destroy();
      resolve(undefined);
    });
  });
}
