import { closeSync, fsyncSync, openSync } from "node:fs";

/** Makes a file, or the names in a folder, durable. */
export function sync(path: string): void {
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
