import { request } from "node:http";
import type { Transport } from "../client.ts";
import { SliverUnreachableError } from "../errors.ts";

/** Longest answer, bytes. */
const MAX_ANSWER = 16 * 1024 * 1024;

/** To the manager's own vocabulary on a Unix socket of this machine. Whose socket it is says who calls. */
export function unixTransport(socketPath: string): Transport {
  return (text, signal) =>
    new Promise((resolve, reject) => {
      const fail = (cause: unknown) =>
        reject(
          new SliverUnreachableError(`no answer from the sliver manager at ${socketPath}: ${textOf(cause)}`, {
            cause,
          }),
        );
      const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
      const call = request({ socketPath, method: "POST", path: "/json", headers, signal }, (answer) => {
        const chunks: Buffer[] = [];
        let size = 0;
        answer.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size > MAX_ANSWER) call.destroy(new Error("the answer is too long"));
          else chunks.push(chunk);
        });
        answer.on("error", fail);
        answer.on("end", () => resolve(Buffer.concat(chunks).toString("utf8")));
      });
      call.on("error", fail);
      call.end(text);
    });
}

function textOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT" || code === "ECONNREFUSED") return `no process listens there (${code})`;
  return error instanceof Error ? error.message : String(error);
}
