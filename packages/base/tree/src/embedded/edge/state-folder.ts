import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StoreFailed } from "../../errors.ts";

/** Creates the folder, or restricts an existing one to mode 0700, and returns the paths of its files. Throws StoreFailed. */
export function prepareFolder(folder: string): { readonly file: string } {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chmodSync(folder, 0o700);
  } catch (error) {
    throw new StoreFailed(`the opening of ${folder}`, "none", error);
  }
  return { file: join(folder, "tree.sqlite") };
}

/** Path of the Unix socket on which the process that has the tree open serves it to other processes. */
export function socketPath(folder: string): string {
  return join(folder, "tree.sock");
}

/** Records the process that has the tree open. Only for messages: the kernel lock decides, and it cannot become stale. */
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
