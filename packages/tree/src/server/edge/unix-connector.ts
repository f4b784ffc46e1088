import { connect } from "node:net";
import { type Connector, UnixConnector } from "@nodeyard/zookeeper";

/**
 * Lets the ZooKeeper client reach a server on a Unix socket. The host and port of the connection string are not looked
 * at: any will do.
 */
export function unixConnector(path: string): Connector {
  return new UnixConnector(path);
}

/** Resolves with nothing when somebody listens on the socket, with the reason when nobody does. */
export function reachable(path: string): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once("error", resolve);
    socket.once("connect", () => {
      socket.destroy();
      resolve(undefined);
    });
  });
}
