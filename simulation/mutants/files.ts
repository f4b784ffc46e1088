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

/**
 * The file below the root whose path ends so, without the folders `src` and `test`: `scheduler/plan.ts` or `scheduler/plan.test.ts`. A list
 * that names files so stays as it is when a folder becomes a package.
 */
export function fileAt(end: string): string {
  known ??= globSync(FILES, { cwd: root, exclude: ["**/node_modules"] }).map((file) => [
    `/${file.replaceAll(/\/(src|test)(?=\/)/g, "")}`,
    file,
  ]);
  const files = known.filter(([each]) => each.endsWith(`/${end}`)).map(([, file]) => file);
  const [file] = files;
  if (file === undefined || files.length > 1)
    throw new NoSuchFile(`${end} names ${files.length} files, not one: ${files.join(", ")}`);
  return file;
}
