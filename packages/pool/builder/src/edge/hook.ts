import { spawn } from "node:child_process";
import { constants } from "node:os";
import { setTimeout as wait } from "node:timers/promises";
import { DIE_WITH_US, killGroup } from "./run.ts";

/** How much of the end of the output is kept, characters; the end usually names the error. */
const KEPT = 8 * 1024;
/** For what a program wrote last, once it has ended, milliseconds: something that it left behind may hold its output open for ever. */
const DRAIN_MS = 1_000;

/**
 * Runs a program without a shell; a program that cannot be started has exit code 127, as in a shell. It is killed when this
 * process dies, and with its whole process group at `signal`. Background processes that it leaves after a normal exit continue,
 * and are not waited for; with `alone` they are killed. Never rejects. The code is negative for a signal.
 */
export function runHook(
  path: string,
  args: readonly string[],
  signal: AbortSignal,
  { env, alone = false }: { readonly env?: Readonly<Record<string, string>>; readonly alone?: boolean } = {},
): Promise<{ readonly code: number; readonly output: string }> {
  return new Promise((resolve) => {
    const [program, ...rest] = [...DIE_WITH_US, path, ...args];
    const child = spawn(program!, rest, {
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
      env: { ...process.env, ...env },
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => {
        output = (output + text).slice(-KEPT);
      });
    const onAbort = () => killGroup(child.pid);
    const settle = (code: number, why = "") => {
      signal.removeEventListener("abort", onAbort);
      child.stdout.destroy();
      child.stderr.destroy();
      resolve({ code, output: output.trim() || why });
    };
    child.once("error", (error) => settle(127, error.message));
    child.once("exit", (code, name) => {
      const status = code ?? -(name === null ? 1 : constants.signals[name]);
      if (alone) killGroup(child.pid);
      const closed = new Promise((done) => child.once("close", done));
      const drained = wait(DRAIN_MS, undefined, { signal, ref: false }).catch(() => {});
      void Promise.race([closed, drained]).then(() => settle(status));
    });
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}
