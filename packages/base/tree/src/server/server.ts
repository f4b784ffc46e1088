import type { Clock } from "@nodeyard/runtime";
import type { TreeCore } from "../embedded/core.ts";
import { admit } from "./connection.ts";
import { listenTcp, listenUnix } from "./edge/listen.ts";
import { Hub } from "./hub.ts";
import { DEFAULT_LIMITS, type ServerLimits } from "./limits.ts";
import type { Listener, TcpOptions } from "./peer.ts";

/** Options of a server: the tree, the addresses and the limits. */
export interface TreeServerOptions {
  readonly core: TreeCore;
  readonly clock: Clock;
  /** Path of the Unix socket, or false for none. */
  readonly socket: string | false;
  /** TCP address to listen on in addition; see `TcpOptions`. */
  readonly tcp?: TcpOptions;
  readonly limits?: Partial<ServerLimits>;
}

/** A running server of ZooKeeper's wire protocol for an embedded tree. */
export interface TreeServer extends AsyncDisposable {
  /** `unix:/path` and `host:port`, in the form that clients use. */
  readonly addresses: readonly string[];
  /** The bound TCP port. */
  readonly port: number | undefined;
  /** Connections that the server closed, by reason: frame, slow, handshake, expired, moved, ... */
  readonly cuts: ReadonlyMap<string, number>;
  /** Closes every connection. Sessions of clients remain, and continue with the next server of this tree. */
  close(): Promise<void>;
}

/** Serves a tree to clients of ZooKeeper's wire protocol. Rejects with `ListenRefused`. */
export async function startTreeServer(options: TreeServerOptions): Promise<TreeServer> {
  const hub = new Hub(options.core, options.clock, { ...DEFAULT_LIMITS, ...options.limits });
  const most = hub.limits.maxConnections;
  const listeners: Listener[] = [];
  async function close(): Promise<void> {
    // Stop listening first, then close the connections: the listeners' `close` waits for them.
    const closed = listeners.map((listener) => listener.close());
    hub.close();
    await Promise.all(closed);
  }
  try {
    if (options.socket !== false)
      listeners.push(await listenUnix(options.socket, most, (peer) => admit(hub, peer)));
    if (options.tcp !== undefined)
      listeners.push(await listenTcp(options.tcp, most, (peer) => admit(hub, peer)));
  } catch (error) {
    await close();
    throw error;
  }
  hub.port = listeners.find((listener) => listener.port !== undefined)?.port;
  return {
    addresses: listeners.map((listener) => listener.address),
    port: hub.port,
    cuts: hub.cuts,
    close,
    [Symbol.asyncDispose]: close,
  };
}
