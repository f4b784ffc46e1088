import { globSync } from "node:fs";
import { resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");
const FILES = ["packages/**/{src,test}/**/*.ts", "simulation/*.ts"];
let known: readonly (readonly [end: string, file: string])[] | undefined;

/** A file's end does not name exactly one file. */
export class NoSuchFile extends Error {
  readonly code = "mutants.no_such_file";
}

/** Where a file of the repository is on this machine. */
export function onDisk(file: string): string {
  return resolve(root, file);
}

/** Files below the root, each with its path without the folders `src` and `test`. */
function files(): readonly (readonly [end: string, file: string])[] {
  known ??= globSync(FILES, { cwd: root, exclude: ["**/node_modules"] })
    .sort()
    .map((file) => [`/${file.replaceAll(/\/(src|test)(?=\/)/g, "")}`, file]);
  return known;
}

/** Source files in folders of this name. */
export function sourcesIn(folder: string): readonly string[] {
  return files()
    .filter(([end, file]) => file.includes("/src/") && end.includes(`/${folder}/`))
    .map(([, file]) => file);
}

/** A path's shortest end by which `fileAt` finds it, without `.ts`. */
export function endOf(file: string, folder: string): string {
  const [end] = files().find(([, each]) => each === file) ?? [file];
  return end.slice(end.lastIndexOf(`/${folder}/`) + 1, -".ts".length);
}

/**
 * The file below the root whose path ends so, without the folders `src` and `test`: `scheduler/plan.ts` or `scheduler/plan.test.ts`. A list
 * that names files so stays as it is when a folder becomes a package.
 */
export function fileAt(end: string): string {
  const found = files().filter(([each]) => each.endsWith(`/${end}`));
  const [file] = found;
  if (file === undefined || found.length > 1)
    throw new NoSuchFile(
      `${end} names ${found.length} files, not one: ${found.map(([, each]) => each).join(", ")}`,
    );
  return file[1];
}

/** The folder of tests whose path ends so. */
export function testsAt(end: string): string {
  const [, file] =
    files().find(([each, path]) => path.endsWith(".test.ts") && each.includes(`/${end}`)) ?? [];
  if (file === undefined) throw new NoSuchFile(`no test is in a folder ${end}`);
  return file.slice(0, file.indexOf(`/${end}`) + 1 + end.length);
}
