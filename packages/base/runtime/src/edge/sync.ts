import { closeSync, fsyncSync, openSync } from "node:fs";

/** fsyncs a file, or a folder whose directory entries must become durable. */
export function syncPathSync(path: string): void {
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
