import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** SQLite's error code SQLITE_BUSY: another process has the lock. The upper bytes hold a more exact code. */
const BUSY = 5;

/** The right to work in an `images-dir`. */
export interface FolderLock {
  release(): void;
}

/**
 * Holds `images-dir` for one builder: a second one would take the first one's builds for leftovers, and end them. The kernel ends the
 * lock with the process, however that ends; Node has no call for file locks, and SQLite has. "taken": another builder has it.
 * Throws what the system says where there is no locking.
 */
export function lockImages(folder: string): FolderLock | "taken" {
  const path = join(folder, ".builder.lock");
  // By ourselves: SQLite would not say why it cannot.
  closeSync(openSync(path, "a", 0o600));
  const database = new DatabaseSync(path);
  try {
    // Nothing is ever written to it, and no journal beside it: a full disk would have no room for one.
    database.exec("PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    return { release: () => database.close() };
  } catch (error) {
    database.close();
    if (((error as { readonly errcode?: number }).errcode ?? 0) % 256 === BUSY) return "taken";
    throw error;
  }
}
