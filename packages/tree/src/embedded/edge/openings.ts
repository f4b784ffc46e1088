import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { sync } from "./sync.ts";

/**
 * How often the tree at `path` was opened, as noted beside the file. The file counts too, but a file that somebody copied
 * over it by hand (with its inode kept, or the number reused) counts what it had then. 0n where nothing is noted.
 */
export function readOpenings(path: string): bigint {
  try {
    return BigInt(/^\d{1,15}/.exec(readFileSync(note(path), "utf8"))?.[0] ?? 0);
  } catch {
    return 0n;
  }
}

/** Notes it durably. Done after the file has counted, so that a crash in between never looks like a copy. */
export function writeOpenings(path: string, count: bigint): void {
  const partial = `${note(path)}.partial`;
  writeFileSync(partial, `${count}\n`, { mode: 0o600 });
  sync(partial);
  renameSync(partial, note(path));
  sync(dirname(path));
}

function note(path: string): string {
  return `${path}.opened`;
}
