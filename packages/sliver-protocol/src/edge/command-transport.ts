import { spawn } from "node:child_process";
import type { Transport } from "../client.ts";
import { SliverUnreachableError } from "../errors.ts";

const MAX_ANSWER = 16 * 1024 * 1024;

/**
 * Through a program's standard input and output: `["ssh", "-T", "control@host"]` reaches the forced command there, whose exit code
 * says whether the call reached a manager: while that starts anew, the answer is a fault of the forwarder's own.
 */
export function commandTransport(command: readonly [string, ...string[]]): Transport {
  const [program, ...args] = command;
  return (text, signal) =>
    new Promise((resolve, reject) => {
      const fail = (why: string, cause?: unknown) =>
        reject(
          new SliverUnreachableError(`no answer from the sliver manager through ${program}: ${why}`, {
            cause,
          }),
        );
      const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"], signal });
      const out: Buffer[] = [];
      let size = 0;
      let complaint = "";
      child.stdout.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size > MAX_ANSWER) child.kill("SIGKILL");
        else out.push(chunk);
      });
      child.stderr.on("data", (chunk: Buffer) => {
        complaint = (complaint + chunk.toString("utf8")).slice(-1000);
      });
      child.on("error", (error) => fail(error.message, error));
      // Whoever ends before it has read everything says why on its way out.
      child.stdin.on("error", () => undefined);
      child.on("close", (code, by) => {
        if (size > MAX_ANSWER) fail("the answer is too long");
        else if (code === 0 && out.length > 0) resolve(Buffer.concat(out).toString("utf8"));
        else
          fail(
            `${by ?? `exit code ${code}`} ${faultOf(Buffer.concat(out).toString("utf8")) ?? complaint.trim()}`,
          );
      });
      child.stdin.end(text);
    });
}

/** What a forwarder that reached nobody says. */
function faultOf(text: string): string | undefined {
  try {
    const { fault } = JSON.parse(text) as { readonly fault?: { readonly message?: unknown } };
    return fault === undefined ? undefined : String(fault.message);
  } catch {
    return undefined;
  }
}
