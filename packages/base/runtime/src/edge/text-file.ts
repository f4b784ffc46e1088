import { readFileSync } from "node:fs";

/**
 * The text of a file; undefined when it does not exist. Any other error is thrown, so that a file without read permission is not taken
 * for an absent one.
 */
export function textIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}
