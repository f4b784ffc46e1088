import { createWriteStream, renameSync } from "node:fs";
import { pipeline } from "node:stream/promises";
import { messageOf, nodeHttp } from "@nodeyard/runtime";
import { ProcessError } from "../errors.ts";
import { discard } from "./files.ts";

/** Without a byte, milliseconds: a copy of a large tree takes its time, but it never rests. */
const SILENCE_MS = 60_000;

/**
 * Writes the answer of a process on this machine to a file, atomically and readable only by its owner. Returns false when no
 * process listens on the socket. Rejects with ProcessError, and leaves no partial file.
 */
export async function fetchToFile({
  socket,
  path,
  file,
}: {
  readonly socket: string;
  readonly path: string;
  readonly file: string;
}): Promise<boolean> {
  const partial = `${file}.new`;
  try {
    const { promise, resolve, reject } = Promise.withResolvers<import("node:http").IncomingMessage>();
    const asking = nodeHttp().request(
      { socketPath: socket, path, timeout: SILENCE_MS, headers: { host: "nodeyard" } },
      resolve,
    );
    asking
      .once("error", reject)
      .once("timeout", () => asking.destroy(new Error("no answer within a minute")));
    asking.end();
    const answer = await promise;
    if (answer.statusCode !== 200)
      throw new Error(
        `the process there answers ${answer.statusCode}: it has no embedded tree, or is an older release`,
      );
    // Fails when the connection ends before the length that was announced.
    await pipeline(answer, createWriteStream(partial, { mode: 0o600, flush: true }));
    renameSync(partial, file);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ECONNREFUSED") return false;
    discard(partial);
    throw new ProcessError(
      "process.no_backup",
      `cannot back up to ${file} by ${socket}: ${messageOf(error)}`,
      { cause: error },
    );
  }
}
