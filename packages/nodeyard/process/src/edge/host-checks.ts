import { statfsSync } from "node:fs";
import { connect, createServer } from "node:net";
import { nodeHttp, nodeHttps } from "@nodeyard/runtime";

/**
 * Bytes that this user can still write beneath a folder, and the share of the disk that they are: without the part that file
 * systems keep for root.
 */
export function freeSpace(folder: string): { readonly bytes: number; readonly share: number } {
  const { bavail, blocks, bsize } = statfsSync(folder);
  return { bytes: bavail * bsize, share: blocks === 0 ? 1 : bavail / blocks };
}

/** How long a process or a server may be silent, milliseconds. */
const ANSWER_MS = 5_000;

/** What the process that listens on a Unix socket answers. Rejects when it does not within five seconds. */
export function askSocket(
  socketPath: string,
  path: string,
  method: "GET" | "POST" = "GET",
): Promise<{ readonly status: number; readonly text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
  const asking = nodeHttp().request(
    { socketPath, path, method, headers: { host: "nodeyard" }, timeout: ANSWER_MS },
    (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      answer.once("error", reject).once("end", () => resolve({ status: answer.statusCode ?? 0, text }));
    },
  );
  asking.once("error", reject);
  asking.once("timeout", () => asking.destroy(new Error(`no answer within ${ANSWER_MS / 1_000} s`)));
  asking.end();
  return promise;
}

/** Rejects when nothing accepts a TCP connection there within five seconds. */
export function connectsTo(host: string, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connect({ host, port, timeout: ANSWER_MS });
  socket.once("connect", resolve).once("error", reject);
  socket.once("timeout", () => reject(new Error(`no answer within ${ANSWER_MS / 1_000} s`)));
  return promise.finally(() => socket.destroy());
}

/**
 * Rejects when no server of this user can listen there. It listens for a moment, so it must not be called where a start may race
 * with it.
 */
export function canListen(host: string, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const server = createServer().once("error", reject);
  server.listen({ host, port, exclusive: true }, () => server.close(() => resolve()));
  return promise;
}

/** Rejects unless a Nodeyard's web interface answers there within five seconds. The name in its certificate is not looked at. */
export function isLive(host: string, port: number, tls: boolean): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const wish = { host, port, path: "/live", timeout: ANSWER_MS };
  const asking = tls ? nodeHttps().request({ ...wish, rejectUnauthorized: false }) : nodeHttp().request(wish);
  asking.once("response", (answer) => {
    answer.resume();
    if (answer.statusCode === 200) resolve();
    else reject(new Error(`/live answers ${answer.statusCode}`));
  });
  asking.once("error", reject);
  asking.once("timeout", () => asking.destroy(new Error(`no answer within ${ANSWER_MS / 1_000} s`)));
  asking.end();
  return promise;
}
