/** SQLite's error code SQLITE_BUSY: another process has the lock. */
const BUSY = 5;

/**
 * Locks a file for this process; undefined: another process has it locked. The kernel ends the lock with the process, however that ends.
 * Node has no call for file locks, but SQLite uses them. Throws the error of SQLite, whose code `sqliteCode` reads.
 */
export function lockFile(path: string): Disposable | undefined {
  const database = new (process.getBuiltinModule("node:sqlite").DatabaseSync)(path);
  try {
    // Nothing is ever written to it, and no journal beside it: a full disk would have no room for one.
    database.exec("PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    return database;
  } catch (error) {
    database.close();
    if (sqliteCode(error) === BUSY) return undefined;
    throw error;
  }
}

/** The primary code of an error of SQLite, which is the lower byte of its extended code. */
export function sqliteCode(error: unknown): number | undefined {
  const { errcode } = error as { readonly errcode?: number };
  return errcode === undefined ? undefined : errcode & 0xff;
}
