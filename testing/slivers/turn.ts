import { readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as pause } from "node:timers/promises";
import { patient } from "../patience.ts";

const FILE = join(tmpdir(), "nodeyard-test-slivers.lock");
/** Longer than one test file takes; a longer wait means that something hangs. */
const LIMIT_MS = patient(300_000);
const BETWEEN_MS = 200;
const SQLITE_BUSY = 5;

/**
 * Names, rules and addresses of slivers are shared by all tests on this machine, so one test file at a time may use it. The lock ends with
 * its process. Resolves with the function that releases it; rejects with the name of its holder. The wait does not block the event loop: a
 * test runner that gets no message from its worker for a minute fails the run.
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

/** The holder of the lock, as text, from the kernel's list of locks. */
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
