import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StoreFailed } from "../../errors.ts";

/** Makes the folder (0700) and says where its files are. A folder that others could read is closed to them. Throws StoreFailed. */
export function prepareFolder(folder: string): { readonly file: string } {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chmodSync(folder, 0o700);
  } catch (error) {
    throw new StoreFailed(`the opening of ${folder}`, "none", error);
  }
  return { file: join(folder, "tree.sqlite") };
}

/** Where the server of a state folder listens, and where clients of the same installation look for it. */
export function socketPath(folder: string): string {
  return join(folder, "tree.sock");
}

/** Notes who holds the tree. For messages only: the lock itself is the kernel's and cannot be stale. */
export function writePid(folder: string): void {
  writeFileSync(join(folder, "tree.pid"), `${process.pid}\n`, { mode: 0o600 });
}

export function readPid(folder: string): string | undefined {
  try {
    return /^\d+/.exec(readFileSync(join(folder, "tree.pid"), "utf8"))?.[0];
  } catch {
    return undefined;
  }
}
