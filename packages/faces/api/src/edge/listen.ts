import { chmodSync, rmSync } from "node:fs";
import { type AddressInfo, connect, isIP } from "node:net";
import { messageOf } from "@nodeyard/runtime";
import type { FastifyInstance } from "fastify";
import { ListenError } from "../errors.ts";

/** Longest path of a Unix socket, bytes: `sun_path` holds 108 with the final zero (unix(7)). */
const MAX_SOCKET_PATH = 107;

/** Listens on TCP; returns the URL, with the port that the system chose for 0. Rejects with ListenError. */
export async function listenTcp(app: FastifyInstance, host: string, port: number): Promise<string> {
  const name = `${isIP(host) === 6 ? `[${host}]` : host}`;
  try {
    await app.listen({ host, port });
  } catch (error) {
    throw new ListenError(
      `cannot listen on ${name}:${port} (${messageOf(error)}); correct webapp in the configuration, choose another address with --webapp HOST:PORT, or turn it off with --no-webapp`,
      { cause: error },
    );
  }
  return `http${app.initialConfig.https ? "s" : ""}://${name}:${(app.server.address() as AddressInfo).port}`;
}

/**
 * Listens on a Unix socket of mode 0600 in a folder that belongs to the user. Removes the socket of a killed process, but not one on
 * which a process answers. Rejects with ListenError.
 */
export async function listenUnix(app: FastifyInstance, path: string): Promise<string> {
  try {
    if (Buffer.byteLength(path) > MAX_SOCKET_PATH)
      throw new Error(`the path is longer than the ${MAX_SOCKET_PATH} bytes that a Unix socket allows`);
    if (await isAnswered(path)) throw new Error("another process listens there");
    rmSync(path, { force: true });
    await app.ready();
    await new Promise<void>((resolve, reject) => {
      app.server.once("error", reject).once("listening", resolve);
      // The umask makes the socket private from its creation on, before any chmod.
      const umask = process.umask(0o177);
      try {
        app.server.listen(path);
      } finally {
        process.umask(umask);
      }
    });
    chmodSync(path, 0o600);
  } catch (error) {
    throw new ListenError(
      `cannot listen on ${path} (${messageOf(error)}); name another state folder with --state DIR`,
      { cause: error },
    );
  }
  return `unix:${path}`;
}

/** Whether a process listens on a socket. A file that is no socket, or that nobody listens on, refuses the connection. */
function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const end = (answered: boolean) => {
      socket.destroy();
      resolve(answered);
    };
    socket.once("connect", () => end(true));
    socket.once("error", () => end(false));
  });
}
