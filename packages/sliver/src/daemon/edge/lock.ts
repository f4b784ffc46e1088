import { mkdirSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { messageOf } from "@nodeyard/runtime";
import { AlreadyRunningError, DaemonConfigError } from "../../errors.ts";

/** SQLite's error numbers: another process has the lock; the file is not a database. */
const BUSY = 5;
const DAMAGED: readonly unknown[] = [11, 26];

/**
 * Holds the state folder for this process. The kernel keeps the lock with the open file and ends it with the process,
 * however that ends; Node has no call for file locks, and SQLite has. Throws AlreadyRunningError, DaemonConfigError.
 */
export function lockFolder(folder: string): { release(): void } {
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
      // The file holds no data, and no process holds a lock on it. It is emptied, not replaced, so that of two processes that do so one gets the lock.
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
 * Holds what all sliver managers of this machine would share, by a folder that is the same for all: of two, each would end the other's
 * slivers as none of its own. Throws AlreadyRunningError, DaemonConfigError.
 */
export function lockMachine(folder: string): { release(): void } {
  try {
    return lockFolder(folder);
  } catch (cause) {
    if (!(cause instanceof AlreadyRunningError)) throw cause;
    throw new AlreadyRunningError("on this machine, with a state folder of its own", { cause });
  }
}

function lock(path: string): { release(): void } {
  const database = new DatabaseSync(path);
  try {
    database.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    throw error;
  }
  return { release: () => database.close() };
}

/** The lower byte: the others say more of the same. */
function failureOf(error: unknown): number | undefined {
  const { errcode } = error as { readonly errcode?: number };
  return errcode === undefined ? undefined : errcode & 0xff;
}
