import { chmodSync, existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { messageOf } from "@nodeyard/runtime";
import { ProcessError } from "../errors.ts";

/** Makes a state folder that only its owner can enter. */
export function makeStateFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chmodSync(folder, 0o700);
  } catch (error) {
    throw new ProcessError(
      "process.state_folder",
      `cannot use the state folder ${folder} (${messageOf(error)}); name another with --state DIR`,
      { cause: error },
    );
  }
}

/** Reads a text that the user named. `what` says what it is for. */
export function readText(path: string, what: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new ProcessError("process.unreadable", `cannot read ${what} ${path}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

export function fileExists(path: string): boolean {
  return existsSync(path);
}

export function isSocket(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isSocket() ?? false;
}
