import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { syncPathSync } from "@nodeyard/runtime";

/**
 * The number of times the tree at `path` was opened, from a file beside it. The database counts too, but when an operator copies an
 * older database over it (with its inode kept, or reused), the copy has an older count. 0n when there is no such file.
 */
export function readOpenings(path: string): bigint {
  try {
    return BigInt(/^\d{1,15}/.exec(readFileSync(note(path), "utf8"))?.[0] ?? 0);
  } catch {
    return 0n;
  }
}

/** Writes the count durably. Called after the database has counted: a crash in between must not make the database look like a copy. */
export function writeOpenings(path: string, count: bigint): void {
  const partial = `${note(path)}.partial`;
  writeFileSync(partial, `${count}\n`, { mode: 0o600 });
  syncPathSync(partial);
  renameSync(partial, note(path));
  syncPathSync(dirname(path));
}

function note(path: string): string {
  return `${path}.opened`;
}
