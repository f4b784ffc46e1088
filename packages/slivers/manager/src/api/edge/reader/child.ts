import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import type { ApiResponse } from "../../handler.ts";
import { type Conversation, serveHttp } from "../http.ts";
import { MAX_FRAME, readFrames, writeFrame } from "./frames.ts";

/** Length of the connection number that the daemon writes first to each connection, in bytes. */
export const CONNECTION_PREFIX = 16;

/** A message of the daemon: a ping, or the answer to question `id`. */
interface DaemonMessage {
  readonly ping?: true;
  readonly id?: number;
  readonly refusal?: number;
  readonly response?: ApiResponse;
}

/** For a call that is longer than a frame after it was parsed; the daemon never sees it. */
const TOO_LONG: ApiResponse = { status: 413, type: "text/plain", body: "too long\n" };

/**
 * Runs the process that parses the requests of untrusted callers: HTTP, JSON and XML of connections that the daemon relays to the socket at
 * `path`. It sends the parsed requests to the daemon and writes the daemon's answers back. It decides nothing.
 */
export function parseForDaemon(path: string, input: Readable, output: Writable): void {
  const numbers = new WeakMap<Socket, number>();
  // Questions without an answer, by number.
  const waiting = new Map<number, (message: DaemonMessage) => void>();
  let asked = 0;
  const ask = (question: object): Promise<DaemonMessage> => {
    const id = ++asked;
    if (!writeFrame(output, { id, ...question }, MAX_FRAME)) return Promise.resolve({ response: TOO_LONG });
    return new Promise((resolve) => waiting.set(id, resolve));
  };
  const http = serveHttp((socket) => {
    const conn = numbers.get(socket);
    return conn === undefined ? undefined : conversation(conn);
  });
  const conversation = (conn: number): Conversation => ({
    admit: async (admit) => (await ask({ conn, admit })).refusal,
    // Not async, because an async function would keep its arguments in memory until the answer.
    answer: (answer, authorization) => ask({ conn, answer, authorization }).then(({ response }) => response!),
    malformed: () => void writeFrame(output, { conn, malformed: true }),
  });
  // HTTP starts only after the connection number. The server itself must listen, because otherwise it would not enforce its time limits.
  const [parse] = http.listeners("connection") as [(socket: Socket) => void];
  http.removeAllListeners("connection").on("connection", (socket: Socket) => {
    const begin = () => {
      const number = socket.read(CONNECTION_PREFIX) as Buffer | null;
      if (number === null) return;
      socket.off("readable", begin);
      numbers.set(socket, Number(number.toString("latin1")));
      parse.call(http, socket);
    };
    socket.on("readable", begin);
    socket.on("error", () => socket.destroy());
  });
  http.listen(path, () => void writeFrame(output, { ready: true }));
  readFrames(
    input,
    Number.MAX_SAFE_INTEGER,
    (value) => {
      const message = value as DaemonMessage;
      if (message.ping === true) writeFrame(output, { pong: true });
      waiting.get(message.id!)?.(message);
      waiting.delete(message.id!);
    },
    (error) => {
      throw error;
    },
  );
}
