import { connect } from "node:net";
import { UnixConnector } from "@nodeyard/zookeeper";
import type { Tree } from "../../contract.ts";
import { socketPath } from "../../embedded/index.ts";
import { connectZooKeeperTree, type ZooKeeperTreeOptions } from "../../zookeeper/index.ts";
import { NotServed } from "../errors.ts";

/** Options for joining the tree that another process of the same machine has open. */
export interface AttachOptions extends Omit<ZooKeeperTreeOptions, "servers" | "chroot" | "connector"> {
  /** The state folder of the installation. */
  readonly folder: string;
}

/**
 * Opens a session with the tree of a state folder from another process (usually the CLI), through the Unix socket of the
 * process that has the tree open. It uses the ZooKeeper client. Rejects with `NotServed` at once when no process listens.
 */
export async function attachEmbeddedTree({ folder, ...options }: AttachOptions): Promise<Tree> {
  const path = socketPath(folder);
  const failure = await reachable(path);
  if (failure !== undefined) throw new NotServed(folder, failure);
  // The connector ignores the server name; it appears only in messages.
  const at = { servers: "localhost", connector: new UnixConnector(path), resyncSpreadMs: 0 };
  return connectZooKeeperTree({ ...at, ...options });
}

/** Resolves with undefined when a process listens on the socket, otherwise with the connection error. */
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
