import { closeSync, fstatSync, openSync, renameSync, writeSync } from "node:fs";
import { messageOf } from "@nodeyard/runtime";
import type { Audit } from "../../api/dispatch.ts";

/** Size in bytes at which a file is renamed to `<path>.1`, replacing the former one. */
const MAX_SIZE = 16 * 1024 * 1024;

/**
 * Appends a line of JSON for each decision. Throws the file system's errors, so that a call that cannot be recorded is not made. A file
 * that cannot be rotated keeps growing, and `onFailure` is called once.
 */
export function auditFile(
  path: string,
  onFailure: (line: string) => void,
): { readonly audit: Audit; close(): void } {
  let file: number | undefined = openSync(path, "a", 0o600);
  let size = fstatSync(file).size;
  let reported = false;
  /** Opens the new file before it closes the old one, because the descriptor of a closed file may be reused for another file. */
  const putAside = (old: number) => {
    try {
      moveAway(path);
      file = openSync(path, "a", 0o600);
      size = 0;
      reported = false;
      closeSync(old);
    } catch (error) {
      if (!reported)
        onFailure(
          `${path} is full and keeps growing, because a new one cannot be opened: ${messageOf(error)}`,
        );
      reported = true;
    }
  };
  return {
    audit: (entry) => {
      if (file === undefined) throw new Error(`${path} is closed`);
      const line = Buffer.from(`${JSON.stringify(entry)}\n`);
      if (size + line.length > MAX_SIZE) putAside(file);
      size += writeSync(file, line);
    },
    close: () => {
      const last = file;
      file = undefined;
      if (last !== undefined) closeSync(last);
    },
  };
}

/** Renames the file. It may already be renamed, by another process or by an attempt that failed afterwards. */
function moveAway(path: string): void {
  try {
    renameSync(path, `${path}.1`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
