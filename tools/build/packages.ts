import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface PackageJson {
  readonly name: string;
  readonly version: string;
  readonly exports?: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

export interface SourcePackage {
  /** Name of the folder below `packages`. */
  readonly folder: string;
  readonly path: string;
  readonly manifest: PackageJson;
}

/** The packages of the workspace at `root`. */
export function readPackages(root: string): SourcePackage[] {
  const folders = readdirSync(join(root, "packages")).sort();
  return folders.flatMap((folder) => {
    const path = join(root, "packages", folder);
    if (!existsSync(join(path, "package.json"))) return [];
    return [{ folder, path, manifest: JSON.parse(readFileSync(join(path, "package.json"), "utf8")) }];
  });
}
