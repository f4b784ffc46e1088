import { copyFileSync, existsSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { syncPathSync } from "@nodeyard/runtime";
import { Refusal, refused } from "../errors.ts";
import { SqliteFile } from "./sqlite-file.ts";
import { prepareFolder, readPid } from "./state-folder.ts";

/**
 * Replaces the tree of a state folder by a checked copy of a backup. A crash leaves either the old file or the new one. Refuses
 * (`StoreRefused`) while a process has the tree open, and when the backup is damaged or no backup of a tree. The next opening starts a new
 * epoch of zxids.
 */
export function restoreEmbeddedTree(options: { readonly folder: string; readonly backup: string }): void {
  const { folder, backup } = options;
  replaceTree(folder, (partial) => {
    copyFileSync(backup, partial);
    check(partial, backup);
  });
}

/** Replaces the tree of a state folder by the file that `make` writes. As `restoreEmbeddedTree` in all else. */
export function replaceTree(folder: string, make: (partial: string) => void): void {
  const { file } = prepareFolder(folder);
  const partial = `${file}.restored`;
  try {
    rmSync(partial, { force: true });
    make(partial);
    syncPathSync(partial);
    retire(file);
    renameSync(partial, file);
    syncPathSync(dirname(file));
  } catch (error) {
    rmSync(partial, { force: true });
    if (error instanceof Refusal) throw refused(error.kind, error.message, folder, readPid(folder));
    throw error;
  }
}

/** Opens the copy, which checks it; closing merges its WAL into one file. Errors name the backup, because the copy is deleted. */
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
 * Makes sure that no process has the old file open and deletes its WAL, which SQLite would otherwise replay into the new file. A
 * damaged or too new file may be replaced; a file in use may not.
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
