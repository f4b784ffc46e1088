import { closeSync, openSync, renameSync, statSync, writeSync } from "node:fs";
import type { Audit } from "../../api/index.ts";

/** Bytes of a file before it becomes `<path>.1`, which it replaces. */
const MAX_SIZE = 16 * 1024 * 1024;

/** Appends a line of JSON per decision. Throws what the file system throws: a call that cannot be noted is not made. */
export function auditFile(path: string): { readonly audit: Audit; close(): void } {
  let file = openSync(path, "a", 0o600);
  let size = statSync(path).size;
  return {
    audit: (entry) => {
      const line = Buffer.from(`${JSON.stringify(entry)}\n`);
      if (size + line.length > MAX_SIZE) {
        closeSync(file);
        renameSync(path, `${path}.1`);
        file = openSync(path, "a", 0o600);
        size = 0;
      }
      size += writeSync(file, line);
    },
    close: () => closeSync(file),
  };
}
