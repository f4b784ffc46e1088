import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { messageOf } from "@nodeyard/runtime";
import { ProcessError } from "../errors.ts";

/**
 * Writes a process id to a file, and returns what removes it, unless another process has taken the file since. What a process
 * that ended left is replaced. Throws ProcessError where the file names a process that runs, or cannot be written.
 */
export function claimPidFile(path: string, pid: number): () => void {
  const holder = pidIn(path);
  if (holder !== undefined && holder !== pid && isRunning(holder))
    throw new ProcessError(
      "process.pid_file",
      `${path} names process ${holder}, which runs: stop it, or name another file with -p`,
    );
  try {
    writeFileSync(path, `${pid}\n`, { mode: 0o644 });
  } catch (error) {
    throw new ProcessError("process.pid_file", `cannot write ${path}: ${messageOf(error)}`, { cause: error });
  }
  return () => {
    if (pidIn(path) === pid) rmSync(path, { force: true });
  };
}

/** Undefined: there is no such file, or it does not begin with a number. */
function pidIn(path: string): number | undefined {
  try {
    const [digits] = /^\d+/.exec(readFileSync(path, "utf8")) ?? [];
    return digits === undefined ? undefined : Number(digits);
  } catch {
    return undefined;
  }
}

/** EPERM: it runs, as another user. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
