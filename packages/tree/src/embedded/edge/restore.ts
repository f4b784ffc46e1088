import { copyFileSync, existsSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { Refusal, refused } from "../errors.ts";
import { SqliteFile } from "./sqlite-file.ts";
import { prepareFolder, readPid } from "./state-folder.ts";
import { sync } from "./sync.ts";

/**
 * Puts a backup in the place of a state folder's tree: a checked copy, so that a crash leaves the old file or the new one. Refused
 * (`StoreRefused`) while a process holds the tree, and when the backup is damaged or not ours. Opening it afterwards starts a new epoch
 * of zxids.
 */
export function restoreEmbeddedTree(options: { readonly folder: string; readonly backup: string }): void {
  const { folder, backup } = options;
  const { file } = prepareFolder(folder);
  const partial = `${file}.restored`;
  try {
    rmSync(partial, { force: true });
    copyFileSync(backup, partial);
    check(partial, backup);
    sync(partial);
    retire(file);
    renameSync(partial, file);
    sync(dirname(file));
  } catch (error) {
    rmSync(partial, { force: true });
    if (error instanceof Refusal) throw refused(error.kind, error.message, folder, readPid(folder));
    throw error;
  }
}

/** Opening checks the copy, and closing leaves it in one file. A refusal names the backup, since the copy is gone when it is read. */
function check(copy: string, backup: string): void {
  try {
    SqliteFile.open(copy).close();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const message =
      error.kind === "damaged"
        ? `${backup} is no backup of a tree, or is damaged; name a file that "nodeyard backup" wrote`
        : error.message.replaceAll(copy, backup);
    throw new Refusal(error.kind, message, error);
  }
}

/**
 * Makes sure that nobody holds the old file and that its WAL is gone: SQLite would replay it into the new one. What is
 * damaged or too new may be replaced; what is in use may not.
 */
function retire(file: string): void {
  if (!existsSync(file)) return;
  try {
    SqliteFile.open(file).close();
  } catch (error) {
    if (!(error instanceof Refusal) || error.kind === "in-use") throw error;
  }
  for (const ending of ["-wal", "-shm"]) rmSync(file + ending, { force: true });
}
