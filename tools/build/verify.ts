import { execFileSync } from "node:child_process";
import { constants, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import type { PackageJson } from "./packages.ts";
import { scriptOf } from "./page.ts";
import { npm } from "./release.ts";

/**
 * Has npm install packed packages globally below an empty folder, where nothing of the checkout can be found. Then
 * imports every door, asks every program for its version, looks for the manual pages, and runs the shell commands of `page`, when it is given, as its reader would.
 * Returns what was tried; throws with the output of what failed.
 */
export function verify(files: readonly string[], page?: string): string[] {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-installed-"));
  try {
    const manifests = installAll(files, folder);
    copyFileSync(process.execPath, join(folder, "bin/node"), constants.COPYFILE_FICLONE);
    const tried = manifests.flatMap((manifest) => [
      ...importDoors(folder, manifest),
      ...(manifest.name === "@nodeyard/dashboard" ? readsPage(folder) : []),
      ...runPrograms(folder, manifest),
      ...manualPages(folder, manifest),
      ...(manifest.name === "nodeyard" ? findsDocs(folder) : []),
    ]);
    if (page === undefined) return tried;
    const home = join(folder, "home");
    mkdirSync(home);
    execute(folder, home, ["/bin/bash", "-euo", "pipefail", "-c", scriptOf(page, "run")]);
    return [...tried, `the commands of ${basename(page)}`];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Installs packed packages globally with `folder` as npm's prefix, and returns their manifests. */
export function installAll(files: readonly string[], folder: string): PackageJson[] {
  npm(
    folder,
    "install",
    "--global",
    "--prefix",
    folder,
    "--prefer-offline",
    "--no-audit",
    "--no-fund",
    "--silent",
    ...files,
  );
  mkdirSync(join(folder, "bin"), { recursive: true });
  return files.map((file) => {
    const manifest = execFileSync("tar", ["-xOzf", file, "package/package.json"], { encoding: "utf8" });
    return JSON.parse(manifest) as PackageJson;
  });
}

function importDoors(folder: string, manifest: PackageJson): string[] {
  // A conformance kit contains its own test runner and can be loaded only inside one.
  const doors = Object.keys(manifest.exports ?? {}).filter(
    (door) => !/^\.\/(testing|conformance)$/.test(door),
  );
  return doors.map((door) => {
    const specifier = manifest.name + door.slice(1);
    evaluate(folder, `await import(${JSON.stringify(specifier)})`);
    return `import ${specifier}`;
  });
}

/** What a listener serves to browsers is part of the package: nothing here could build it. */
function readsPage(folder: string): string[] {
  evaluate(
    folder,
    `const { readPage } = await import("@nodeyard/dashboard");
    const paths = (await readPage()).map(({ path }) => path.replace(/-[0-9a-f]{12}/, "")).sort().join();
    if (paths !== "/,/assets/icon.svg,/assets/licences.txt,/assets/page.css,/assets/page.js,/assets/worker.js") throw new Error(paths);`,
  );
  return ["the page"];
}

function evaluate(folder: string, program: string): void {
  const words = ["--disable-warning=ExperimentalWarning", "--input-type=module", "-e", program];
  execute(folder, join(folder, "lib"), [join(folder, "bin/node"), ...words]);
}

function runPrograms(folder: string, manifest: PackageJson): string[] {
  return Object.keys(manifest.bin ?? {}).map((name) => {
    const version = execute(folder, folder, [join(folder, "bin", name), "--version"]).trim();
    if (!version.includes(manifest.version))
      throw new Error(`${name} --version says ${JSON.stringify(version)}, its package ${manifest.version}`);
    return `${name} --version`;
  });
}

/** npm links pages to where `man` looks for them beside a program in PATH. */
function manualPages(
  folder: string,
  { name, man = [] }: PackageJson & { readonly man?: readonly string[] },
): string[] {
  for (const page of man) {
    const link = join(folder, "share/man", `man${page.at(-1)}`, basename(page));
    if (!existsSync(link)) throw new Error(`${name} has no manual page ${link}`);
  }
  return man.length === 0 ? [] : [`${man.length} manual pages of ${name}`];
}

/** The site comes with the program, with the sources that its pages link to. */
function findsDocs(folder: string): string[] {
  const page = execute(folder, folder, [join(folder, "bin/nodeyard"), "docs", "install"]).trim();
  const links = [...readFileSync(page, "utf8").matchAll(/href="(\.\.[^"#]*)/g)].map(([, link]) =>
    join(dirname(page), link!),
  );
  const broken = links.filter((link) => !existsSync(link));
  if (!page.endsWith(".html") || broken.length > 0)
    throw new Error(`${page} links to ${broken.join(", ") || "itself only"}`);
  return ["nodeyard docs"];
}

/** Runs a program with the installed ones and those of the system in PATH, and nothing else of this process's environment. */
function execute(folder: string, cwd: string, [program, ...words]: readonly string[]): string {
  // Of its own also for root, whose default is shared with whatever runs on the machine.
  const NODEYARD_STATE = join(folder, "state");
  const env = { HOME: join(folder, "home"), NODEYARD_STATE, PATH: `${join(folder, "bin")}:/usr/bin:/bin` };
  // Far beyond what it takes on a busy machine: for what hangs.
  return execFileSync(program!, words, { cwd, env, encoding: "utf8", stdio: "pipe", timeout: 120_000 });
}
