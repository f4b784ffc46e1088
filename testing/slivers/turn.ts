import { readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as pause } from "node:timers/promises";

const FILE = join(tmpdir(), "nodeyard-test-slivers.lock");
/** Longer than one file of tests takes; who waits for more has met something that hangs. */
const LIMIT_MS = 300_000;
const BETWEEN_MS = 200;
const SQLITE_BUSY = 5;

/**
 * Names, rules and addresses of slivers are the same for all who test on this machine, so one file of tests at a time has it. The lock goes
 * with its process. Resolves with what gives it back; rejects with who has it. The wait leaves the event loop free: a
 * test runner that hears nothing from its worker for a minute fails the run.
 */
export async function turn(file = FILE, limitMs = LIMIT_MS): Promise<() => void> {
  const lock = new DatabaseSync(file, { timeout: 0 });
  lock.exec("PRAGMA locking_mode = EXCLUSIVE");
  for (const began = performance.now(); ; ) {
    try {
      lock.exec("BEGIN EXCLUSIVE");
      return () => lock.close();
    } catch (error) {
      const isBusy = (error as { errcode?: number }).errcode === SQLITE_BUSY;
      if (isBusy && performance.now() - began < limitMs) {
        await pause(BETWEEN_MS);
        continue;
      }
      lock.close();
      throw isBusy
        ? new Error(`${holder(file)} makes slivers on this machine; end it`, { cause: error })
        : error;
    }
  }
}

/** Who has the lock, in words, by what the kernel knows of locks. */
function holder(file: string): string {
  const { ino } = statSync(file);
  const locks = readFileSync("/proc/locks", "utf8").split("\n");
  const own = locks.find((line) => line.includes(`:${ino} `) && !line.includes("->"));
  const pid = own?.trim().split(/\s+/)[4];
  if (pid === undefined) return "somebody whom the kernel does not name";
  try {
    return `process ${pid} (${readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim()})`;
  } catch {
    return `process ${pid}, which is gone by now,`;
  }
}
