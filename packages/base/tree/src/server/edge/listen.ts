import { chmodSync, rmSync } from "node:fs";
import { type AddressInfo, createServer, isIP, type Server, type Socket } from "node:net";
import { ListenRefused } from "../errors.ts";
import type { Listener, OnPeer, Peer, TcpOptions } from "../peer.ts";

/** Name of every peer on the Unix socket. */
const UNIX = "unix";
/** Longest path of a Unix socket: `sun_path` holds 108 bytes with the final zero. */
const MAX_SOCKET_PATH = 107;
/** For the TLS handshake alone; the connect request has its own limit in the hub's. */
const HANDSHAKE_LIMIT_MS = 10_000;
/** Connections above the limit that may be in a TLS handshake. Node refuses further ones. */
const SPARE_CONNECTIONS = 64;
/** A client that does not close its connection after the end of its session is disconnected after this time. */
const LINGER_MS = 2_000;

/**
 * Listens on a Unix socket of mode 0600. An existing file is removed: the caller holds the lock of the tree, so no other
 * process can be listening on it.
 */
export async function listenUnix(path: string, maxConnections: number, onPeer: OnPeer): Promise<Listener> {
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH)
    throw new ListenRefused(
      `${path} is longer than the ${MAX_SOCKET_PATH} bytes of a Unix socket's path; choose a shorter state folder`,
    );
  rmSync(path, { force: true });
  const server = createServer((socket) => adopt(socket, UNIX, onPeer));
  server.maxConnections = maxConnections + SPARE_CONNECTIONS;
  await started(server, path, () => {
    // The socket is created within this call with the mode that the umask leaves, so no other user can connect before the chmod.
    const umask = process.umask(0o177);
    try {
      server.listen(path);
    } finally {
      process.umask(umask);
    }
  });
  chmodSync(path, 0o600);
  return listener(server, `unix:${path}`, undefined);
}

/** Listens on TCP with TLS and client certificates, or without TLS on loopback only (rule 11). */
export async function listenTcp(
  options: TcpOptions,
  maxConnections: number,
  onPeer: OnPeer,
): Promise<Listener> {
  const { host, port, tls } = options;
  if (tls === undefined && !isLoopback(host))
    throw new ListenRefused(
      `${host}:${port} can be reached from other machines: give a certificate, a key and a CA, or listen on 127.0.0.1`,
    );
  const take = (socket: Socket) => adopt(socket, `${socket.remoteAddress}:${socket.remotePort}`, onPeer);
  const server =
    tls === undefined
      ? createServer({ noDelay: true }, take)
      : // Loaded only here, because processes that only connect to a tree load this file too.
        process.getBuiltinModule("node:tls").createServer(
          {
            ...tls,
            requestCert: true,
            rejectUnauthorized: true,
            minVersion: "TLSv1.2",
            handshakeTimeout: HANDSHAKE_LIMIT_MS,
            noDelay: true,
          },
          take,
        );
  server.maxConnections = maxConnections + SPARE_CONNECTIONS;
  await started(server, `${host}:${port}`, () => server.listen(port, host));
  const bound = (server.address() as AddressInfo).port;
  return listener(server, `${isIP(host) === 6 ? `[${host}]` : host}:${bound}`, bound);
}

/** By the text alone: no name is resolved. */
function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

/** Resolves when the server listens; rejects with ListenRefused when it cannot. */
function started(server: Server, name: string, listen: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: Error) =>
      reject(new ListenRefused(`cannot listen on ${name}: ${error.message}`, error));
    server.once("error", failed);
    server.once("listening", () => {
      server.off("error", failed);
      // The error of a single connection (a failed accept) must not stop the server.
      server.on("error", () => undefined);
      resolve();
    });
    listen();
  });
}

/**
 * The server as its owner sees it. `close` ends all connections at once: clients continue their sessions elsewhere or after a restart.
 */
function listener(server: Server, address: string, port: number | undefined): Listener {
  // Raw sockets, also those in a TLS handshake, so that `close` can destroy them and need not wait for them.
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  return {
    address,
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** Makes a socket a peer, and gives its events to the handlers that `onPeer` returns; without handlers it is closed. */
function adopt(socket: Socket, name: string, onPeer: OnPeer): void {
  // "close" always follows, and does the work. Without a listener an error would end the process.
  socket.on("error", () => undefined);
  const out = isSecure(socket) ? frameByFrame(socket) : together(socket);
  const peer: Peer = {
    name,
    local: name === UNIX,
    get queuedBytes() {
      return out.queuedBytes();
    },
    write(bytes) {
      if (!socket.destroyed && !socket.writableEnded) out.write(bytes);
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    end() {
      out.end();
      // Not the socket's own timeout, which restarts with every byte: a client that sends slowly could keep the connection open.
      const patience = setTimeout(() => socket.destroy(), LINGER_MS);
      socket.once("close", () => clearTimeout(patience));
      // Reads on, because the client's end-of-stream comes after data that is no longer processed.
      socket.resume();
    },
    destroy: () => socket.destroy(),
  };
  const handlers = onPeer(peer);
  if (handlers === undefined) {
    socket.destroy();
    return;
  }
  socket.on("data", (bytes: Buffer) => handlers.arrived(bytes));
  out.onDrained(() => handlers.drained());
  socket.once("close", () => handlers.closed());
}

/** The way out of a connection. */
interface Outlet {
  queuedBytes(): number;
  write(bytes: Uint8Array): void;
  /** Ends the stream after everything written. */
  end(): void;
  onDrained(listener: () => void): void;
}

/** Writes of one turn of the event loop leave in one system call. */
function together(socket: Socket): Outlet {
  let corked = false;
  return {
    queuedBytes: () => socket.writableLength,
    write(bytes) {
      if (!corked) {
        corked = true;
        socket.cork();
        setImmediate(() => {
          corked = false;
          socket.uncork();
        });
      }
      socket.write(bytes);
    },
    end: () => socket.end(),
    onDrained: (listener) => socket.on("drain", listener),
  };
}

/**
 * Each frame in a TLS record of its own, as a ZooKeeper sends them. kazoo, and so Zuul, waits for its socket and does not see a second frame
 * in a record that OpenSSL has read: it would lie there until the next ping. Node joins what is written while a write is under way.
 */
function frameByFrame(socket: Socket): Outlet {
  let waiting: Uint8Array[] = [];
  let waitingBytes = 0;
  let isWriting = false;
  let isEnding = false;
  let drained = () => {};
  const next = () => {
    const bytes = waiting.shift();
    isWriting = bytes !== undefined;
    if (bytes !== undefined) {
      waitingBytes -= bytes.length;
      socket.write(bytes, next);
    } else if (isEnding) socket.end();
    else drained();
  };
  socket.once("close", () => {
    waiting = [];
    waitingBytes = 0;
  });
  return {
    queuedBytes: () => socket.writableLength + waitingBytes,
    write(bytes) {
      waiting.push(bytes);
      waitingBytes += bytes.length;
      if (!isWriting) next();
    },
    end() {
      isEnding = true;
      if (!isWriting) socket.end();
    },
    onDrained(listener) {
      drained = listener;
    },
  };
}

function isSecure(socket: Socket): boolean {
  return "encrypted" in socket;
}
