import type { PackageJson } from "./packages.ts";

/**
 * The package.json of a built package: doors and programs are the built files, and fields for development are removed. One that contains
 * others needs what they need, and has no doors: the types of what it exports would be those of packages that nobody can install.
 */
export function builtManifest(source: PackageJson, parts: readonly PackageJson[] = []): PackageJson {
  const { devDependencies: _devDependencies, files: _files, scripts: _scripts, ...kept } = source;
  const inside = new Set(parts.map(({ name }) => name));
  const needs = [...parts, source].flatMap(({ dependencies = {} }) => Object.entries(dependencies));
  const outside = needs.filter(([name]) => !inside.has(name)).sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    ...kept,
    ...(outside.length > 0 && { dependencies: Object.fromEntries(outside) }),
    ...(source.exports === undefined
      ? {}
      : { exports: parts.length > 0 ? {} : mapValues(source.exports, door) }),
    ...(source.bin === undefined ? {} : { bin: mapValues(source.bin, program) }),
  } as PackageJson;
}

function door(path: string, key: string): unknown {
  const built = program(path, key);
  return built === path ? path : { types: path.replace(/\.ts$/, ".d.ts"), default: built };
}

function program(path: string, key: string): string {
  if (!path.startsWith("./src/")) throw new Error(`cannot build ${key}: ${path} is not below ./src/`);
  return path.replace(/\.ts$/, ".js");
}

function mapValues<T>(
  table: Readonly<Record<string, string>>,
  fn: (value: string, key: string) => T,
): Record<string, T> {
  return Object.fromEntries(Object.entries(table).map(([key, value]) => [key, fn(value, key)]));
}
