import { mkdirSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { lockFile, messageOf, sqliteCode } from "@nodeyard/runtime";
import { AlreadyRunningError, DaemonConfigError } from "../../errors.ts";

/** SQLite's error codes for a file that is not a database (CORRUPT, NOTADB). */
const DAMAGED: readonly unknown[] = [11, 26];

/**
 * Locks the state folder for this process. The kernel releases the lock with the process, however it ends. Throws AlreadyRunningError,
 * DaemonConfigError.
 */
export function lockFolder(folder: string): Disposable {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { mode, uid } = statSync(folder);
  const own = process.getuid!();
  if (own !== 0 && own !== uid)
    throw new DaemonConfigError(`${folder} is user ${uid}'s, and this is user ${own}; run sliverd as root`);
  if ((mode & 0o077) !== 0)
    throw new DaemonConfigError(`other users can enter the state folder ${folder}; chmod 700 it`);
  const path = join(folder, "lock.sqlite");
  let lock: Disposable | undefined;
  try {
    lock = lockEmpty(path);
  } catch (cause) {
    throw new DaemonConfigError(
      `${path} cannot be locked (${messageOf(cause)}): remove it while no sliverd works in ${folder}`,
      { cause },
    );
  }
  if (lock === undefined) throw new AlreadyRunningError(`in ${folder}`);
  return lock;
}

/**
 * Locks the machine, by a folder that is the same for all sliver managers: two managers would end each other's slivers as unknown ones.
 * Throws AlreadyRunningError, DaemonConfigError.
 */
export function lockMachine(folder: string): Disposable {
  try {
    return lockFolder(folder);
  } catch (cause) {
    if (!(cause instanceof AlreadyRunningError)) throw cause;
    throw new AlreadyRunningError("on this machine, with a state folder of its own", { cause });
  }
}

/** The file contains no data. A damaged one is truncated and not replaced, so that only one of two processes gets the lock. */
function lockEmpty(path: string): Disposable | undefined {
  try {
    return lockFile(path);
  } catch (error) {
    if (!DAMAGED.includes(sqliteCode(error))) throw error;
    truncateSync(path);
    return lockFile(path);
  }
}
