import { type ChildProcess, spawn } from "node:child_process";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, DriverError, sleep, tail } from "@nodeyard/driver";
import { FILES } from "../machine/command-line.ts";
import { status } from "./monitor.ts";
import { type Account, as } from "./tools.ts";

/** How QEMU is started. The abort kills it; later it runs on without the launcher. */
export interface SpawnContext {
  readonly account: Account;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Network namespace in which QEMU starts, by name; absent: the host's. */
  readonly namespace?: string;
  /** Descriptor from which QEMU reads its guest. QEMU is then up when it has read the state, with the guest stopped. */
  readonly state?: number;
}

/** Pause between two looks at a QEMU that is starting, milliseconds. */
const POLL_MS = 20;
/** Bytes of QEMU's output that are read for an error. */
const LAST_WORDS = 2_000;

/**
 * Starts QEMU detached from the launcher's terminal and process group, and waits until its guest runs. QEMU's own `-daemonize` is
 * not used, because QEMU's sandbox forbids the system call that it needs. Rejects with "configuration" when the program is
 * missing, with "transient" and QEMU's last words when it ends. After an error no process is left.
 */
export async function spawned(
  emulator: string,
  words: readonly string[],
  cwd: string,
  { account, clock, signal, state, namespace }: SpawnContext,
): Promise<void> {
  signal.throwIfAborted();
  const log = join(cwd, FILES.log);
  const up = state === undefined ? "running" : "paused";
  for (const file of [log, join(cwd, FILES.monitor), join(cwd, FILES.agent)]) await rm(file, { force: true });
  const sink = await open(log, "ax", 0o600);
  try {
    if (account !== null) await sink.chown(account.uid, account.gid);
    const started = as(account, emulator, words, namespace);
    const child = spawn(started.program, started.words, {
      cwd,
      ...started.ids,
      env: { PATH: process.env.PATH ?? "/usr/bin:/bin", LC_ALL: "C" },
      detached: true,
      stdio: ["ignore", sink.fd, sink.fd, ...(state === undefined ? [] : [state])],
    });
    const end = ended(child);
    // The launcher may end before QEMU does.
    child.unref();
    try {
      for (;;) {
        if (end.reason !== undefined)
          throw new DriverError(kindOf(end.reason), `${emulator}: ${await lastWords(log, end.reason)}`);
        if ((await status(cwd)) === up) return;
        await sleep(clock, POLL_MS, signal);
      }
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    }
  } finally {
    await sink.close();
  }
}

/** An object whose `reason` is set when the process ends or could not start. */
function ended(child: ChildProcess): { reason: Error | undefined } {
  const end: { reason: Error | undefined } = { reason: undefined };
  child.once("error", (error) => {
    end.reason = error;
  });
  child.once("exit", (code, signal) => {
    end.reason ??= new Error(`ended with ${signal ?? code}`);
  });
  return end;
}

/** A missing program is an error of the configuration; anything else may work the next time. */
function kindOf(reason: Error): "configuration" | "transient" {
  return (reason as NodeJS.ErrnoException).code === "ENOENT" ? "configuration" : "transient";
}

/** Why QEMU ended, with the last lines of its output. */
async function lastWords(log: string, reason: Error): Promise<string> {
  const text = (await tail(log, LAST_WORDS))?.trim();
  return text ? `${reason.message}: ${text.split("\n").slice(-3).join("; ")}` : reason.message;
}
