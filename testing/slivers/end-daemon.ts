import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

/** Milliseconds, and how often: a killed daemon's children end when they notice that nobody asks them any more. */
const BETWEEN = 20;
const LOOKS = 1_000;

/**
 * Ends a `sliverd`, and resolves when its children are gone, too: they have ids of slivers, and a look at the machine would find some of
 * them. Resolves with its exit code or the signal. Rejects when a child stays.
 */
export async function endDaemon(child: ChildProcess, signal: "SIGTERM" | "SIGKILL"): Promise<unknown> {
  if (child.exitCode !== null || child.signalCode !== null) return child.signalCode ?? child.exitCode;
  const children = readersOf(child.pid!);
  const ended = new Promise((resolve) => child.once("exit", (code, by) => resolve(by ?? code)));
  child.kill(signal);
  const how = await ended;
  for (let look = 0; children.some(isReader); look++) {
    if (look === LOOKS) throw new Error(`processes ${children.filter(isReader)} outlive their sliverd`);
    await pause(BETWEEN);
  }
  return how;
}

function readersOf(pid: number): number[] {
  const children = textOf(`/proc/${pid}/task/${pid}/children`).trim().split(" ").map(Number);
  return children.filter((one) => one > 0 && isReader(one));
}

/** A zombie has no command. */
function isReader(pid: number): boolean {
  return textOf(`/proc/${pid}/cmdline`).includes("sliver-reader");
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
