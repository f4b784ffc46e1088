import type { PackageJson } from "./packages.ts";

/** The package.json of a built package: doors and programs are the built files, what only development needs is gone. */
export function builtManifest(source: PackageJson): PackageJson {
  const { devDependencies: _devDependencies, files: _files, scripts: _scripts, ...kept } = source;
  return {
    ...kept,
    ...(source.exports === undefined ? {} : { exports: mapValues(source.exports, door) }),
    ...(source.bin === undefined ? {} : { bin: mapValues(source.bin, program) }),
  } as PackageJson;
}

function door(path: string, key: string): unknown {
  if (!path.endsWith(".ts")) return outOfSource(path, key);
  const built = outOfSource(path, key).slice(0, -".ts".length);
  return { types: `${built}.d.ts`, default: `${built}.js` };
}

function program(path: string, key: string): string {
  return outOfSource(path, key).replace(/\.ts$/, ".js");
}

function outOfSource(path: string, key: string): string {
  if (!path.startsWith("./src/")) throw new Error(`cannot build ${key}: ${path} is not below ./src/`);
  return `./${path.slice("./src/".length)}`;
}

function mapValues<T>(
  table: Readonly<Record<string, string>>,
  fn: (value: string, key: string) => T,
): Record<string, T> {
  return Object.fromEntries(Object.entries(table).map(([key, value]) => [key, fn(value, key)]));
}
