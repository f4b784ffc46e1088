import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join, posix } from "node:path";
import { type Import, importsOf } from "./imports.ts";
import { type Token, tokenize } from "./tokens.ts";

export interface Manifest {
  readonly name: string;
  readonly exports?: Readonly<Record<string, unknown>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

export interface Package {
  readonly name: string;
  /** `packages/<floor>/<folder>`, relative to the root. */
  readonly folder: string;
  readonly manifest: Manifest;
}

export interface SourceFile {
  /** Relative to the root, with forward slashes. */
  readonly path: string;
  readonly tokens: readonly Token[];
  readonly imports: readonly Import[];
  readonly lines: number;
  /** The package that it belongs to; none for tools, bench, testing and simulation. */
  readonly package?: Package;
  /** Which part of its package. Only `src` is shipped. */
  readonly part: "src" | "test" | "other";
}

export interface Workspace {
  readonly root: string;
  readonly manifest: Manifest;
  readonly packages: readonly Package[];
  readonly files: readonly SourceFile[];
}

/** Folders of the root, beside the packages, that hold TypeScript. */
const ROOT_FOLDERS = ["bench", "examples", "simulation", "testing", "tools"];
const SKIPPED = new Set(["node_modules", "dist", "coverage", "generated"]);

/** Reads every TypeScript file of the repository once; all checks use the result. */
export function readWorkspace(root: string): Workspace {
  const manifest = readManifest(join(root, "package.json"));
  const packages = folders(join(root, "packages"))
    .flatMap((floor) => folders(join(root, "packages", floor)).map((name) => `packages/${floor}/${name}`))
    .filter((folder) => existsSync(join(root, folder, "package.json")))
    .map((folder): Package => {
      const own = readManifest(join(root, folder, "package.json"));
      return { name: own.name, folder, manifest: own };
    });
  const files = [
    ...packages.flatMap((one) => [
      ...readFolder(root, `${one.folder}/src`, "src", one),
      ...readFolder(root, `${one.folder}/test`, "test", one),
      // Of the dashboard: what runs in a browser, and what makes files of it.
      ...["browser", "build"].flatMap((part) => readFolder(root, `${one.folder}/${part}`, "other", one)),
    ]),
    ...ROOT_FOLDERS.flatMap((folder) => readFolder(root, folder, "other")),
  ];
  return { root, manifest, packages, files };
}

function readManifest(path: string): Manifest {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new Error(`cannot read ${path}`, { cause });
  }
}

function folders(path: string): string[] {
  if (!existsSync(path)) return [];
  const entries = readdirSync(path, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
}

function readFolder(root: string, folder: string, part: SourceFile["part"], owner?: Package): SourceFile[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(folder, entry.name);
    if (entry.isDirectory()) return SKIPPED.has(entry.name) ? [] : readFolder(root, path, part, owner);
    return /\.tsx?$/.test(entry.name) ? [readFile(root, path, part, owner)] : [];
  });
}

function readFile(root: string, path: string, part: SourceFile["part"], owner?: Package): SourceFile {
  const text = readFileSync(join(root, path), "utf8");
  const tokens = tokenize(text);
  const lines = text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
  return { path, tokens, imports: importsOf(tokens), lines, part, ...(owner ? { package: owner } : {}) };
}

/** The floor of a package. */
export function floorOf({ folder }: Package): string {
  return folder.split("/")[1]!;
}

/** `@scope/name/sub` and `name/sub` split into package and subpath (`.` or `./sub`). */
export function splitSpecifier(specifier: string): { readonly name: string; readonly subpath: string } {
  const parts = specifier.split("/");
  const length = specifier.startsWith("@") ? 2 : 1;
  const rest = parts.slice(length).join("/");
  return { name: parts.slice(0, length).join("/"), subpath: rest === "" ? "." : `./${rest}` };
}

/** A relative import's target, relative to the root. */
export function resolveRelative(file: Pick<SourceFile, "path">, specifier: string): string {
  return posix.join(posix.dirname(file.path), specifier);
}

export function isRelative(specifier: string): boolean {
  return specifier.startsWith("./") || specifier.startsWith("../");
}

export function isTest(file: Pick<SourceFile, "path">): boolean {
  return basename(file.path).endsWith(".test.ts");
}
