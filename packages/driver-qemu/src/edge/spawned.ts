import { type ChildProcess, spawn } from "node:child_process";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, DriverError, sleep } from "@nodeyard/driver";
import { FILES } from "../machine/command-line.ts";
import { tail } from "./files.ts";
import { status } from "./monitor.ts";
import { type Account, as } from "./tools.ts";

export interface SpawnContext {
  readonly account: Account;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The network namespace that QEMU is started in, by name; absent: the host's. */
  readonly namespace?: string;
  /** A descriptor that QEMU reads its guest from: it is up when that is done, and its guest stands still then. */
  readonly state?: number;
}

const POLL_MS = 20;
const LAST_WORDS = 2_000;

/**
 * Starts a QEMU that is no child of any terminal or group of ours, and waits until its guest runs. Not with QEMU's own
 * `-daemonize`: its sandbox forbids the call that this needs.
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

/** Filled in when the process ends, or was never there. */
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

function kindOf(reason: Error): "configuration" | "transient" {
  return (reason as NodeJS.ErrnoException).code === "ENOENT" ? "configuration" : "transient";
}

async function lastWords(log: string, reason: Error): Promise<string> {
  const text = (await tail(log, LAST_WORDS))?.trim();
  return text ? `${reason.message}: ${text.split("\n").slice(-3).join("; ")}` : reason.message;
}
