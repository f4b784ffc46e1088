import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

export interface PackageJson {
  readonly name: string;
  readonly version: string;
  /** Not published: the packages that need it contain it. */
  readonly private?: boolean;
  readonly exports?: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

export interface SourcePackage {
  /** Path of the folder below `packages`: its floor and its name. */
  readonly folder: string;
  readonly path: string;
  readonly manifest: PackageJson;
}

/** The packages of the workspace at `root`. */
export function readPackages(root: string): SourcePackage[] {
  const found = globSync("packages/*/*/package.json", { cwd: root }).sort();
  return found.map((file) => {
    const path = join(root, dirname(file));
    const manifest = JSON.parse(readFileSync(join(root, file), "utf8")) as PackageJson;
    return { folder: relative("packages", dirname(file)), path, manifest };
  });
}

/** The private packages that one contains, since it needs them, itself or through others. */
export function partsOf({ manifest }: SourcePackage, all: readonly SourcePackage[]): SourcePackage[] {
  const parts = new Set<SourcePackage>();
  const collect = ({ dependencies = {} }: PackageJson) => {
    for (const one of all) {
      if (one.manifest.private !== true || parts.has(one) || !(one.manifest.name in dependencies)) continue;
      parts.add(one);
      collect(one.manifest);
    }
  };
  collect(manifest);
  return [...parts];
}
