import { execFileSync, spawnSync } from "node:child_process";
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { skip } from "../skipped.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** The program as it was at a commit, in a temporary folder. */
export interface Revision {
  readonly commit: string;
  /** The executable's source. */
  readonly bin: string;
  /** Whether a package of that commit needs a dependency that is not installed today; then it cannot run here. */
  readonly missing: readonly string[];
  remove(): void;
}

/** Why there is no earlier commit to run, or undefined. */
export function requireHistory(rev: string): string | undefined {
  const found = spawnSync("git", ["rev-parse", "--verify", "--quiet", `${rev}^{commit}`], { cwd: ROOT });
  if (found.status === 0) return undefined;
  return skip(`mixed tests need the git history (${rev} is not there). Run: git fetch --unshallow`);
}

/**
 * Unpacks a commit's packages. Our own packages are linked to those of that commit, all others to what is installed, so that
 * nothing is downloaded.
 */
export function checkOut(rev: string): Revision {
  const git = (...words: string[]) => execFileSync("git", words, { cwd: ROOT, maxBuffer: 256 << 20 });
  const commit = git("rev-parse", "--verify", `${rev}^{commit}`).toString().trim();
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-revision-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once("exit", remove);
  execFileSync("tar", ["-x", "-C", folder], { input: git("archive", commit, "packages", "package.json") });
  const modules = join(folder, "node_modules");
  mkdirSync(join(modules, "@nodeyard"), { recursive: true });
  const packages = globSync("packages/{*,*/*}/package.json", { cwd: folder }).map(dirname);
  const manifests = packages.map((name) => readManifest(join(folder, name)));
  const own = new Set(manifests.map(({ name }) => name));
  for (const [index, name] of packages.entries())
    symlinkSync(join(folder, name), join(modules, manifests[index]!.name));
  for (const name of readdirSync(join(ROOT, "node_modules"))) {
    if (name.startsWith(".") || name === "@nodeyard" || own.has(name)) continue;
    symlinkSync(join(ROOT, "node_modules", name), join(modules, name));
  }
  const missing = manifests
    .flatMap(({ dependencies = {} }) => Object.keys(dependencies))
    .filter((name) => !existsSync(join(modules, name)));
  return {
    commit,
    // Before the house had floors the program was one package.
    bin: join(folder, globSync("packages/nodeyard/{,cli/}src/bin/nodeyard.ts", { cwd: folder })[0]!),
    missing: [...new Set(missing)],
    remove,
  };
}

function readManifest(folder: string): { name: string; dependencies?: Record<string, string> } {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    name: string;
    dependencies?: Record<string, string>;
  };
}
