import { mkdirSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { messageOf } from "@nodeyard/runtime";
import { AlreadyRunningError, DaemonConfigError } from "../../errors.ts";

/** SQLite's error codes: another process has the lock (SQLITE_BUSY); the file is not a database (CORRUPT, NOTADB). */
const BUSY = 5;
const DAMAGED: readonly unknown[] = [11, 26];

/**
 * Locks the state folder for this process. The kernel releases the lock with the process, however it ends. Node has no call for file locks,
 * but SQLite uses them. Throws AlreadyRunningError, DaemonConfigError.
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
  try {
    try {
      return lock(path);
    } catch (error) {
      if (!DAMAGED.includes(failureOf(error))) throw error;
      // The file contains no data, and no process has it locked. It is truncated and not replaced, so that only one of two processes gets
      // the lock.
      truncateSync(path);
      return lock(path);
    }
  } catch (cause) {
    if (failureOf(cause) === BUSY) throw new AlreadyRunningError(`in ${folder}`, { cause });
    throw new DaemonConfigError(
      `${path} cannot be locked (${messageOf(cause)}): remove it while no sliverd works in ${folder}`,
      { cause },
    );
  }
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

function lock(path: string): Disposable {
  const database = new DatabaseSync(path);
  try {
    database.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

/** The primary error code, which is the lower byte of SQLite's extended code. */
function failureOf(error: unknown): number | undefined {
  const { errcode } = error as { readonly errcode?: number };
  return errcode === undefined ? undefined : errcode & 0xff;
}
