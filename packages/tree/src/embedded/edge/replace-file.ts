import { copyFileSync, existsSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { refused } from "../errors.ts";
import { Refusal } from "./refusal.ts";
import { SqliteFile } from "./sqlite-file.ts";
import { readPid } from "./state-folder.ts";
import { sync } from "./sync.ts";

/** Replaces a tree's file by a checked copy of another one, so that a crash leaves the old one or the new one. */
export function replaceFile(folder: string, source: string, file: string): void {
  const partial = `${file}.restored`;
  try {
    rmSync(partial, { force: true });
    copyFileSync(source, partial);
    // Opening checks the copy; closing leaves it in one file.
    SqliteFile.open(partial).close();
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
