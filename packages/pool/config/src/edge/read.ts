import { isUtf8 } from "node:buffer";
import { accessSync, constants, statSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import type { PathKind } from "@nodeyard/driver";
import { messageOf } from "@nodeyard/runtime";
import type { ConfigInput } from "../load.ts";
import type { DriverRegistry, Finding } from "../types.ts";

/** Ends of sentences about a path, by the system's code. */
const PATH_PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: "does not exist on this machine; create it, or correct the path",
  ENOTDIR: "does not exist on this machine; create it, or correct the path",
  EACCES: "this user may not use; give the right to whom Nodeyard runs as, and run this as the same",
};

/**
 * Where the configuration is read from; the secure file has the credentials that it refers to. Relative paths start where the
 * process does.
 */
export interface ConfigFiles {
  readonly path: string;
  readonly securePath?: string;
}

/** What a configuration file refers to besides itself: variables, and drivers by name. */
export interface ConfigEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly drivers: DriverRegistry;
}

/** The texts, or why a file could not be read at all: missing, not allowed, or not UTF-8. */
export type ReadResult = { readonly input: ConfigInput } | { readonly unreadable: Finding };

/**
 * The texts of the files, for `loadConfig` and `validateConfig`. Never rejects. The two files are not of one moment: a watch
 * looks again.
 */
export async function readConfig(files: ConfigFiles, around: ConfigEnvironment): Promise<ReadResult> {
  const main = await textOf(files.path);
  if (typeof main !== "string") return main;
  if (files.securePath === undefined) return { input: { ...around, path: files.path, text: main } };
  const secure = await textOf(files.securePath);
  if (typeof secure !== "string") return secure;
  const input = { ...around, path: files.path, text: main, securePath: files.securePath, secureText: secure };
  return { input };
}

/** The text of a file, which has to be UTF-8: in another encoding names would silently become others. */
async function textOf(path: string): Promise<string | { readonly unreadable: Finding }> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (error) {
    return unreadable(path, `the file cannot be read: ${messageOf(error)}`);
  }
  if (isUtf8(bytes)) return bytes.toString("utf8");
  // In UTF-8 the byte of a line feed occurs in no other character, so each line can be checked alone.
  const lines = bytes.toString("latin1").split("\n");
  const wrong = lines.findIndex((line) => !isUtf8(Buffer.from(line, "latin1")));
  return unreadable(path, "the file has bytes in this line that are not UTF-8; save it as UTF-8", wrong + 1);
}

/** A finding about the file as a whole; `line`: where the bytes are. */
function unreadable(file: string, message: string, line = 1): { readonly unreadable: Finding } {
  return {
    unreadable: { severity: "error", source: "syntax", file, line, column: 1, path: "", message },
  };
}

/**
 * What keeps this process from using a path that the configuration names, as the end of a sentence about it; undefined: nothing.
 * Relative paths start where the process does.
 */
export function pathProblem(kind: PathKind, path: string): string | undefined {
  try {
    const isFolder = statSync(path).isDirectory();
    if (kind === "file" && isFolder) return "is a folder; write the path of a file";
    if (kind !== "file" && !isFolder) return "is not a folder; write the path of a folder";
    accessSync(path, kind === "work-folder" ? constants.R_OK | constants.W_OK : constants.R_OK);
    return undefined;
  } catch (error) {
    return (
      PATH_PROBLEMS[String((error as NodeJS.ErrnoException).code)] ?? `cannot be used: ${messageOf(error)}`
    );
  }
}

/** The files at one moment. Links are followed. */
export interface Stamp {
  /** Differs whenever a file was written, replaced, made or removed. */
  readonly text: string;
  /** When the younger of the files was written, milliseconds since the epoch; undefined: neither can be looked at. */
  readonly modified: number | undefined;
}

/** The stamp of the files now; a file that cannot be looked at has one, too. Never rejects. */
export async function stampOf(files: ConfigFiles): Promise<Stamp> {
  const paths = files.securePath === undefined ? [files.path] : [files.path, files.securePath];
  let modified: number | undefined;
  const stamps = await Promise.all(
    paths.map(async (path) => {
      try {
        // Nanoseconds and inode: an editor that writes twice within a second, or replaces the file, is noticed.
        const { mtimeNs, ino, size } = await stat(path, { bigint: true });
        modified = Math.max(modified ?? 0, Number(mtimeNs) / 1e6);
        return `${mtimeNs} ${ino} ${size}`;
      } catch (error) {
        return `unreadable ${(error as NodeJS.ErrnoException).code}`;
      }
    }),
  );
  return { text: stamps.join(", "), modified };
}
