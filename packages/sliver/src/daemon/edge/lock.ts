import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { AlreadyRunningError, DaemonConfigError } from "../errors.ts";

/**
 * Holds the state folder for this process. The kernel keeps the lock with the open file and ends it with the process,
 * however that ends; Node has no call for file locks, and SQLite has. Throws AlreadyRunningError, DaemonConfigError.
 */
export function lockFolder(folder: string): { release(): void } {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if ((statSync(folder).mode & 0o077) !== 0)
    throw new DaemonConfigError(`others may enter the state folder ${folder}; chmod 700 it`);
  const database = new DatabaseSync(join(folder, "lock.sqlite"));
  try {
    database.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch (cause) {
    database.close();
    throw new AlreadyRunningError(folder, { cause });
  }
  return { release: () => database.close() };
}
