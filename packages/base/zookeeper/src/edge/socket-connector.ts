import { lookup } from "node:dns/promises";
import { connect as connectTcp, isIP, type Socket } from "node:net";
import type { ConnectionOptions } from "node:tls";
import type { Connector, Endpoint, Link, LinkHandlers, TlsOptions } from "../types.ts";

/** Most bytes of one read of a socket. Frames may be longer or shorter. */
const READ_BUFFER = 64 * 1024;

/** Connects by TCP, or by TLS 1.2 and newer with a client certificate. */
export class SocketConnector implements Connector {
  readonly #tls: TlsOptions | undefined;

  constructor(tls?: TlsOptions) {
    this.#tls = tls;
  }

  /** All addresses of a name; an address is its own. Rejects with the error of the resolver. */
  async resolve(host: string): Promise<readonly string[]> {
    if (isIP(host) !== 0) return [host];
    const found = await lookup(host, { all: true });
    return found.map((entry) => entry.address);
  }

  open(endpoint: Endpoint, handlers: LinkHandlers): Link {
    const tls = this.#tls;
    if (tls !== undefined) return openSecure(endpoint, handlers, tls);
    return openPlain({ host: endpoint.address, port: endpoint.port, noDelay: true }, handlers);
  }

  /**
   * Uses the next tick, which comes after all promise reactions of the present one. So the operations that many replies
   * cause leave in one write, without waiting for a turn of the event loop.
   */
  defer(fn: () => void): void {
    process.nextTick(fn);
  }
}

/** Connects to the Unix socket at `path`, whatever servers the connection string names. */
export class UnixConnector extends SocketConnector {
  readonly #path: string;

  constructor(path: string) {
    super();
    this.#path = path;
  }

  override async resolve(): Promise<readonly string[]> {
    return [this.#path];
  }

  override open(_endpoint: Endpoint, handlers: LinkHandlers): Link {
    return openPlain({ path: this.#path }, handlers);
  }
}

/** Where a socket connects to. */
type Place =
  | { readonly path: string }
  | { readonly host: string; readonly port: number; readonly noDelay: true };

/** A connection without TLS. The buffer is used again after the callback, so handlers copy what they keep. */
function openPlain(place: Place, handlers: LinkHandlers): Link {
  // One buffer for all reads of the socket: allocating a buffer per read is a good part of the cost of a small reply.
  const buffer = Buffer.allocUnsafeSlow(READ_BUFFER);
  const socket = connectTcp({
    ...place,
    onread: {
      buffer,
      callback(count) {
        link.received(buffer, count);
        return true;
      },
    },
  });
  const link = new SocketLink(socket, handlers, "connect");
  return link;
}

function openSecure(endpoint: Endpoint, handlers: LinkHandlers, tls: TlsOptions): Link {
  // Loaded only here: node:tls takes a third of the start time of a bare Node process, and Unix sockets do not need it.
  const socket = process.getBuiltinModule("node:tls").connect(secureOptions(endpoint, tls));
  socket.setNoDelay(true);
  const link = new SocketLink(socket, handlers, "secureConnect");
  socket.on("data", (bytes: Buffer) => link.received(bytes, bytes.length));
  return link;
}

/**
 * The server's certificate is checked against `serverName` or the name in the connection string, not against the address that it
 * resolved to. An IP address is no server name (RFC 6066, section 3).
 */
function secureOptions(endpoint: Endpoint, tls: TlsOptions): ConnectionOptions {
  const name = tls.serverName ?? endpoint.host;
  return {
    host: endpoint.address,
    port: endpoint.port,
    minVersion: "TLSv1.2",
    ...(isIP(name) === 0 ? { servername: name } : {}),
    ...(tls.ca === undefined ? {} : { ca: [tls.ca].flat().map(pem) }),
    ...(tls.cert === undefined ? {} : { cert: pem(tls.cert) }),
    ...(tls.key === undefined ? {} : { key: pem(tls.key) }),
    ...(tls.passphrase === undefined ? {} : { passphrase: tls.passphrase }),
    ...(tls.verifyHost === false ? { checkServerIdentity: () => undefined } : {}),
  };
}

function pem(value: string | Uint8Array): string | Buffer {
  return typeof value === "string" ? value : Buffer.from(value);
}

/** One socket. It reports "opened" and "closed" at most once each, and nothing after `destroy`. */
class SocketLink implements Link {
  readonly #socket: Socket;
  readonly #handlers: LinkHandlers;
  readonly #written: () => void;
  #opened = false;
  /** `write` returned false, and `drained` was not called since. */
  #waiting = false;
  #over = false;
  /** The first error, which is the cause; those that follow come of it. */
  #error: Error | undefined;

  constructor(socket: Socket, handlers: LinkHandlers, ready: "connect" | "secureConnect") {
    this.#socket = socket;
    this.#handlers = handlers;
    this.#written = () => {
      if (!this.#waiting || this.#over || socket.writableLength > 0) return;
      this.#waiting = false;
      handlers.drained();
    };
    socket.once(ready, () => {
      this.#opened = true;
      if (!this.#over) handlers.opened();
    });
    socket.on("error", (error) => {
      this.#error ??= error;
    });
    // ZooKeeper servers do not use half-closed connections: after the end of their side they read nothing either.
    socket.on("end", () => socket.destroy());
    socket.on("close", () => {
      if (this.#over) return;
      this.#over = true;
      handlers.closed(this.#error);
    });
  }

  received(bytes: Buffer, length: number): void {
    if (!this.#over) this.#handlers.received(bytes, length);
  }

  /** False: the kernel has not taken everything. The caller must not change the bytes until `drained`. */
  write(bytes: Buffer): boolean {
    this.#socket.write(bytes, this.#written);
    if (this.#socket.writableLength === 0) return true;
    this.#waiting = true;
    return false;
  }

  destroy(): void {
    if (this.#over) return;
    this.#over = true;
    // A graceful end only for an open socket with nothing left to write. Otherwise an unreachable or stuck peer would keep the socket open.
    if (this.#opened && this.#socket.writableLength === 0) this.#socket.destroySoon();
    else this.#socket.destroy();
  }
}
