import { connect, type Socket } from "node:net";
import type { Connector, Link, LinkHandlers } from "@nodeyard/zookeeper";

/**
 * Lets the ZooKeeper client reach a server on a Unix socket. The host and port of the connection string are not looked
 * at: any will do.
 */
export function unixConnector(path: string): Connector {
  return {
    resolve: async (host) => [host],
    open: (_endpoint, handlers) => new UnixLink(connect({ path }), handlers),
    // After the promise reactions of this turn: what they set off leaves in one write.
    defer: (fn) => process.nextTick(fn),
  };
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

class UnixLink implements Link {
  readonly #socket: Socket;
  readonly #handlers: LinkHandlers;
  #waiting = false;
  #over = false;
  #error: Error | undefined;

  constructor(socket: Socket, handlers: LinkHandlers) {
    this.#socket = socket;
    this.#handlers = handlers;
    socket.once("connect", () => {
      if (!this.#over) handlers.opened();
    });
    socket.on("data", (bytes: Buffer) => {
      if (!this.#over) handlers.received(bytes, bytes.length);
    });
    socket.on("error", (error) => {
      this.#error = error;
    });
    socket.on("end", () => socket.destroy());
    socket.once("close", () => {
      if (this.#over) return;
      this.#over = true;
      handlers.closed(this.#error);
    });
  }

  write(bytes: Buffer): boolean {
    this.#socket.write(bytes, () => this.#written());
    this.#waiting = this.#socket.writableLength > 0;
    return !this.#waiting;
  }

  destroy(): void {
    if (this.#over) return;
    this.#over = true;
    this.#socket.destroySoon();
    if (this.#socket.writableLength > 0) this.#socket.destroy();
  }

  #written(): void {
    if (!this.#waiting || this.#over || this.#socket.writableLength > 0) return;
    this.#waiting = false;
    this.#handlers.drained();
  }
}
