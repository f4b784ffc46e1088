import { spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { jsonOrUndefined } from "@nodeyard/runtime";
import type { Transport } from "../client.ts";
import { SliverBusyError, SliverUnreachableError } from "../errors.ts";

/** Longest answer in bytes. */
const MAX_ANSWER = 16 * 1024 * 1024;

/**
 * Calls the manager's own API over a Unix socket of this machine. The socket determines the rights of the caller. Rejects with SliverBusyError
 * for a caller that calls more often than the manager serves.
 */
export function unixTransport(socketPath: string): Transport {
  return async (text, signal) => {
    const headers = {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
      // The manager may have closed a kept one while this process was busy, and the next write to it would fail.
      connection: "close",
    };
    try {
      return await new Promise((resolve, reject) => {
        const options = { socketPath, method: "POST", path: "/json", headers, signal };
        // Not by an import, for the reason that packages/base/runtime/src/edge/node-http.ts gives.
        const call = process.getBuiltinModule("node:http").request(options, (answer) => {
          const text = collect(answer, () => call.destroy());
          if (answer.statusCode !== 429) text.then(resolve, reject);
          else text.then((why) => reject(new SliverBusyError(why.trim())), reject);
        });
        call.on("error", reject);
        call.end(text);
      });
    } catch (cause) {
      if (cause instanceof SliverBusyError) throw cause;
      const { code } = cause as NodeJS.ErrnoException;
      const nobody = code === "ENOENT" || code === "ECONNREFUSED";
      const why = nobody ? `no process listens there (${code})` : (cause as Error).message;
      throw new SliverUnreachableError(`no answer from the sliver manager at ${socketPath}: ${why}`, {
        cause,
      });
    }
  };
}

/**
 * Calls through a program's standard input and output: `["ssh", "-T", "control@host"]` runs the forced command, whose exit code says
 * whether the call reached a manager. While the manager restarts, the forwarder itself answers with a fault.
 */
export function commandTransport(command: readonly [string, ...string[]]): Transport {
  const [program, ...args] = command;
  return async (text, signal) => {
    try {
      const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"], signal });
      let stderr = "";
      child.stderr.on("data", (chunk: Buffer) => {
        stderr = (stderr + chunk.toString("utf8")).slice(-1000);
      });
      // A program that ends before it has read everything is judged by its exit code, so EPIPE is ignored.
      child.stdin.on("error", () => undefined);
      const ended = new Promise<number | string | null>((resolve, reject) => {
        child.on("error", reject);
        child.on("close", (code, by) => resolve(by ?? code));
      });
      child.stdin.end(text);
      const [answer, how] = await Promise.all([collect(child.stdout, () => child.kill("SIGKILL")), ended]);
      if (how === 0 && answer !== "") return answer;
      const end = typeof how === "string" ? how : `exit code ${how}`;
      throw new Error(`${end} ${faultOf(answer) ?? stderr.trim()}`);
    } catch (cause) {
      throw new SliverUnreachableError(
        `no answer from the sliver manager through ${program}: ${(cause as Error).message}`,
        { cause },
      );
    }
  };
}

/** Reads all output as text. When it becomes longer than 16 MiB, calls `stop` and rejects. */
export function collect(from: Readable, stop: () => void): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    from.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= MAX_ANSWER) chunks.push(chunk);
      else {
        reject(new Error("the answer is too long"));
        stop();
      }
    });
    from.on("error", reject);
    from.on("end", () => resolve(Buffer.concat(chunks).toString("utf8")));
  });
}

/** The message of the fault with which a forwarder answers when it reaches no manager. */
function faultOf(text: string): string | undefined {
  const { fault } = (jsonOrUndefined(text) ?? {}) as { readonly fault?: { readonly message?: unknown } };
  return fault && String(fault.message);
}
