import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { PackageJson } from "./packages.ts";

/**
 * Packs built packages and unpacks them side by side into an empty folder, as an installation would; dependencies of
 * others come from `root`, so that nothing is fetched. Then imports every door and asks every program for its version.
 * Returns what was tried; throws with the output of what failed.
 */
export function verify(root: string, dists: readonly string[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-installed-"));
  try {
    return installAll(root, dists, folder).flatMap((manifest) => [
      ...importDoors(folder, manifest),
      ...runPrograms(folder, manifest),
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Installs built packages into `folder`, which exists, and returns their manifests. */
export function installAll(root: string, dists: readonly string[], folder: string): PackageJson[] {
  const manifests = dists.map((dist) => install(folder, dist));
  for (const manifest of manifests) linkOthers(root, folder, manifest);
  return manifests;
}

function install(folder: string, dist: string): PackageJson {
  const manifest: PackageJson = JSON.parse(readFileSync(join(dist, "package.json"), "utf8"));
  const pack = ["pack", "--silent", "--pack-destination", folder, dist];
  const tarball = execFileSync("npm", pack, { encoding: "utf8", cwd: folder }).trim().split("\n").at(-1)!;
  const target = join(folder, "node_modules", manifest.name);
  mkdirSync(target, { recursive: true });
  execFileSync("tar", ["-xzf", join(folder, tarball), "-C", target, "--strip-components=1"]);
  return manifest;
}

function linkOthers(root: string, folder: string, manifest: PackageJson): void {
  for (const name of Object.keys(manifest.dependencies ?? {})) {
    const target = join(folder, "node_modules", name);
    if (existsSync(target)) continue;
    const source = join(root, "node_modules", name);
    if (!existsSync(source)) throw new Error(`${manifest.name} depends on ${name}, which is not installed`);
    mkdirSync(dirname(target), { recursive: true });
    symlinkSync(source, target);
  }
}

function importDoors(folder: string, manifest: PackageJson): string[] {
  // A conformance kit contains its own test runner and can be loaded only inside one.
  const doors = Object.keys(manifest.exports ?? {}).filter(
    (door) => !/^\.\/(testing|conformance)$/.test(door),
  );
  return doors.map((door) => {
    const specifier = manifest.name + door.slice(1);
    execute(folder, ["--input-type=module", "-e", `await import(${JSON.stringify(specifier)})`]);
    return `import ${specifier}`;
  });
}

function runPrograms(folder: string, manifest: PackageJson): string[] {
  return Object.entries(manifest.bin ?? {}).map(([name, path]) => {
    const file = join(folder, "node_modules", manifest.name, path);
    const version = execute(folder, [file, "--version"]).trim();
    if (!version.includes(manifest.version))
      throw new Error(`${name} --version says ${JSON.stringify(version)}, its package ${manifest.version}`);
    return `${name} --version`;
  });
}

function execute(folder: string, args: readonly string[]): string {
  const options = { cwd: folder, encoding: "utf8", stdio: "pipe", timeout: 30_000 } as const;
  return execFileSync(process.execPath, ["--disable-warning=ExperimentalWarning", ...args], options);
}
