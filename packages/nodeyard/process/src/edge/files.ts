import { execFile } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { messageOf } from "@nodeyard/runtime";
import { ProcessError } from "../errors.ts";

/** Names in a state folder. Only a folder with one of them gets its mode restricted. */
const OURS: ReadonlySet<string> = new Set(["tree.sqlite", "journal.sqlite", "lost+found"]);

/**
 * Makes a state folder that only its owner can enter: it holds credentials. A folder of other things is left as it is, and
 * refused: `--state /tmp` must not close /tmp to others. Throws ProcessError. Twice: the same.
 */
export function makeStateFolder(folder: string): void {
  try {
    makeFolder(folder);
    if ((statSync(folder).mode & 0o077) === 0) return;
    const names = readdirSync(folder);
    if (names.length > 0 && !names.some((name) => OURS.has(name)))
      throw new Error("others may enter it, and it holds files that are not Nodeyard's");
    chmodSync(folder, 0o700);
  } catch (error) {
    throw new ProcessError(
      "process.state_folder",
      `cannot use the state folder ${folder} (${messageOf(error)}); name another with --state DIR`,
      { cause: error },
    );
  }
}

/** Not `recursive`: where a folder's parent is there and can hold none (/proc), Node 24 tries for ever. */
function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" && statSync(folder).isDirectory()) return;
    const parent = dirname(resolve(folder));
    if (code !== "ENOENT" || existsSync(parent)) throw error;
    makeFolder(parent);
    mkdirSync(folder, { mode: 0o700 });
  }
}

/** Reads a file that the user named, as UTF-8. `what` is its purpose, for the error message. Throws ProcessError. */
export function readText(path: string, what: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new ProcessError("process.unreadable", `cannot read ${what} ${path}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** Writes a file atomically, readable only by its owner. Throws ProcessError, and then the former file is as it was. */
export function writePrivate(path: string, text: string): void {
  try {
    writeFileSync(`${path}.new`, text, { mode: 0o600, flush: true });
    // A leftover of an earlier try keeps its mode otherwise.
    chmodSync(`${path}.new`, 0o600);
    renameSync(`${path}.new`, path);
  } catch (error) {
    discard(`${path}.new`);
    throw new ProcessError("process.unwritable", `cannot write ${path}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** Removes an incomplete file; an error is ignored, because the cause is reported already. */
export function discard(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // The earlier failure is reported.
  }
}

/** Whether there is a file or folder at `path`; false also for a path that this user may not look at. */
export function fileExists(path: string): boolean {
  return existsSync(path);
}

/** Whether there is a folder at `path`; a link to one counts. Throws where this user may not look. */
export function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** Throws ProcessError where this user may not look. */
export function isSocket(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isSocket() ?? false;
  } catch (error) {
    throw new ProcessError(
      "process.no_access",
      `cannot read ${path} (${messageOf(error)}): run this as the user that Nodeyard runs as, or name another state folder with --state DIR`,
      { cause: error },
    );
  }
}

/**
 * Makes a key pair in `folder`, unless it is there, and returns the path of the private half. Rejects as ssh-keygen fails.
 * Without a passphrase: daemons use it.
 */
export async function makeKey(folder: string, name: string): Promise<string> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, name);
  if (!existsSync(file))
    await promisify(execFile)("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "nodeyard", "-f", file]);
  return file;
}
