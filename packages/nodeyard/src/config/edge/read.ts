import { readFile, stat } from "node:fs/promises";
import { messageOf } from "@nodeyard/runtime";
import type { ConfigInput } from "../load.ts";
import type { DriverRegistry, Finding } from "../types.ts";

/** Where the configuration is read from; the secure file has the credentials that it refers to. */
export interface ConfigFiles {
  readonly path: string;
  readonly securePath?: string;
}

/** What a configuration file refers to besides itself. */
export interface ConfigEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly drivers: DriverRegistry;
}

/** A file could not be read at all. */
export type ReadResult = { readonly input: ConfigInput } | { readonly unreadable: Finding };

/** The texts of the files, for `loadConfig` and `validateConfig`. */
export async function readConfig(files: ConfigFiles, around: ConfigEnvironment): Promise<ReadResult> {
  const main = await textOf(files.path);
  if (typeof main !== "string") return main;
  if (files.securePath === undefined) return { input: { ...around, path: files.path, text: main } };
  const secure = await textOf(files.securePath);
  if (typeof secure !== "string") return secure;
  const input = { ...around, path: files.path, text: main, securePath: files.securePath, secureText: secure };
  return { input };
}

async function textOf(path: string): Promise<string | { readonly unreadable: Finding }> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const message = `the file cannot be read: ${messageOf(error)}`;
    return {
      unreadable: { severity: "error", source: "syntax", file: path, line: 1, column: 1, path: "", message },
    };
  }
}

/** The files at one moment. Links are followed. */
export interface Stamp {
  /** Differs whenever a file was written, replaced, made or removed. */
  readonly text: string;
  /** When the younger of the files was written, milliseconds since the epoch; undefined: neither can be looked at. */
  readonly modified: number | undefined;
}

export async function stampOf(files: ConfigFiles): Promise<Stamp> {
  const paths = files.securePath === undefined ? [files.path] : [files.path, files.securePath];
  let modified: number | undefined;
  const stamps = await Promise.all(
    paths.map(async (path) => {
      try {
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
