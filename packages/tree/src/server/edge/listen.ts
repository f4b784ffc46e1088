import { chmodSync, rmSync } from "node:fs";
import { type AddressInfo, createServer, isIP, type Server, type Socket } from "node:net";
import { ListenRefused } from "../errors.ts";
import type { Listener, OnPeer, Peer, TcpOptions } from "../peer.ts";

/** Name of all peers on the Unix socket. */
const UNIX = "unix";
/** Longest path of a Unix socket: `sun_path` holds 108 bytes with the final zero. */
const MAX_SOCKET_PATH = 107;
const HANDSHAKE_LIMIT_MS = 10_000;
/** Connections beyond the limit that may be in the midst of a handshake; the system refuses more. */
const SPARE_CONNECTIONS = 64;
/** A client whose session is closed and that does not hang up is cut off after this. */
const LINGER_MS = 2_000;

/**
 * Listens on a Unix socket of mode 0600. A file that is already there is removed: whoever calls holds the tree's lock,
 * so nobody can be listening on it.
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
    // The socket is made within this call, with the mode that the umask leaves: nobody gets in before the chmod.
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

/** Listens on TCP: with TLS and client certificates, or in the clear on loopback only. */
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
      : // Loaded here alone: whoever only connects to a tree loads this file, too.
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

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

function started(server: Server, name: string, listen: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: Error) =>
      reject(new ListenRefused(`cannot listen on ${name}: ${error.message}`, error));
    server.once("error", failed);
    server.once("listening", () => {
      server.off("error", failed);
      // Errors of single connections (a failed accept) stop nothing.
      server.on("error", () => undefined);
      resolve();
    });
    listen();
  });
}

function listener(server: Server, address: string, port: number | undefined): Listener {
  // Raw sockets, those in the midst of a TLS handshake included: nobody may delay the end.
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

function adopt(socket: Socket, name: string, onPeer: OnPeer): void {
  socket.on("error", () => undefined);
  let corked = false;
  const peer: Peer = {
    name,
    local: name === UNIX,
    get queuedBytes() {
      return socket.writableLength;
    },
    write(bytes) {
      if (socket.destroyed || socket.writableEnded) return;
      if (!corked) {
        // What one turn answers leaves in one system call.
        corked = true;
        socket.cork();
        setImmediate(() => {
          corked = false;
          socket.uncork();
        });
      }
      socket.write(bytes);
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    end() {
      socket.end();
      // Not the socket's own timeout: that one starts anew with every byte of a client that dribbles.
      const patience = setTimeout(() => socket.destroy(), LINGER_MS);
      socket.once("close", () => clearTimeout(patience));
      // Its goodbye is behind what it sent and nobody reads.
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
  socket.on("drain", () => handlers.drained());
  socket.once("close", () => handlers.closed());
}
