import type { PackageJson } from "./packages.ts";

/** The package.json of a built package: doors and programs are the built files, and fields for development are removed. */
export function builtManifest(source: PackageJson): PackageJson {
  const { devDependencies: _devDependencies, files: _files, scripts: _scripts, ...kept } = source;
  return {
    ...kept,
    ...(source.exports === undefined ? {} : { exports: mapValues(source.exports, door) }),
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
