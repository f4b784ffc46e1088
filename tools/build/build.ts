import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { readPage } from "@nodeyard/dashboard";
import { manualPages, type Pages, sliverHostPages } from "../generate/manual.ts";
import { placeOf, writeCode } from "./code.ts";
import { builtManifest } from "./manifest.ts";
import { partsOf, readPackages, type SourcePackage } from "./packages.ts";
import { npm } from "./release.ts";
import { rewriteRequires, rewriteTypes } from "./specifiers.ts";

/**
 * Builds every package of the workspace that is published into its `dist`, which is a package of its own: JavaScript and declarations below
 * `src` (so that relative paths, that of package.json too, mean the same), README, licence, manual pages, the site, and a package.json that
 * points at them. Returns the folders. Rejects when something does not compile.
 */
export async function build(root: string): Promise<string[]> {
  mkdirSync(join(root, ".tmp"), { recursive: true });
  const work = mkdtempSync(join(root, ".tmp", "build-"));
  try {
    const packages = readPackages(root);
    declare(root, work);
    const manual: Readonly<Record<string, Pages>> = {
      nodeyard: await manualPages(),
      "@nodeyard/sliver": sliverHostPages(),
    };
    const dists: string[] = [];
    for (const one of packages.filter(({ manifest }) => manifest.private !== true)) {
      const declared = join(work, "out", one.folder, "src");
      dists.push(
        await assemble(root, declared, one, partsOf(one, packages), manual[one.manifest.name] ?? {}),
      );
    }
    return dists;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Checks the types and writes declarations, in one run for all packages: packages see each other's sources, and each file is read once. */
function declare(root: string, work: string): void {
  const up = relative(work, root);
  const config = {
    extends: `${up}/tsconfig.json`,
    compilerOptions: {
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      rootDir: `${up}/packages`,
      outDir: "out",
    },
    include: [`${up}/packages/*/*/src`],
  };
  writeFileSync(join(work, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  try {
    execFileSync(process.execPath, [tsc, "-p", work], { cwd: root, encoding: "utf8", stdio: "pipe" });
  } catch (error) {
    const output = (error as { stdout?: string }).stdout;
    throw new Error(`the packages do not compile:\n${output}`, { cause: error });
  }
}

async function assemble(
  root: string,
  declared: string,
  source: SourcePackage,
  parts: readonly SourcePackage[],
  pages: Pages,
): Promise<string> {
  const dist = join(source.path, "dist");
  rmSync(dist, { recursive: true, force: true });
  await writeCode(source, dist, parts);
  if (parts.length === 0) copyTree(declared, join(dist, "src"), () => rewriteTypes);
  for (const [from, to] of [[source, ""] as const, ...parts.map((one) => [one, placeOf(one)] as const)])
    copyTree(join(from.path, "src"), join(dist, "src", to), (name) => {
      if (name.endsWith(".ts")) return "skip";
      return name.endsWith(".cjs") ? rewriteRequires : "as is";
    });
  if (source.manifest.name === "@nodeyard/dashboard") await writePage(join(dist, "page"));
  if (source.manifest.name === "nodeyard") writeSite(root, join(dist, "site"));
  for (const name of ["README.md", "LICENSE"]) {
    const file = [join(source.path, name), join(root, name)].find((path) => existsSync(path));
    if (file !== undefined) copyFileSync(file, join(dist, name));
  }
  const man = Object.keys(pages).map((name) => `./man/${name}`);
  // npm links them to where `man` looks.
  const manifest = {
    ...builtManifest(
      source.manifest,
      parts.map(({ manifest }) => manifest),
    ),
    ...(man.length > 0 && { man }),
  };
  if (man.length > 0) mkdirSync(join(dist, "man"));
  for (const [name, page] of Object.entries(pages)) writeFileSync(join(dist, "man", name), page);
  writeFileSync(join(dist, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  for (const program of Object.values(manifest.bin ?? {})) makeExecutable(join(dist, program));
  return dist;
}

/** The files that a browser loads, where `readPage` of the built package finds them. */
async function writePage(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  for (const { path, bytes } of await readPage())
    writeFileSync(join(folder, path === "/" ? "index.html" : basename(path)), bytes);
}

/** The documentation, where `nodeyard docs` of the built package finds it. Throws when Sphinx is missing or finds a fault in a page. */
function writeSite(root: string, folder: string): void {
  npm(root, "run", "--silent", "site", "--", folder);
}

function makeExecutable(path: string): void {
  if (!readFileSync(path, "utf8").startsWith("#!"))
    throw new Error(`${path} does not start with #!/usr/bin/env node`);
  chmodSync(path, 0o755);
}

type Treatment = "skip" | "as is" | ((text: string) => string);

function copyTree(from: string, to: string, treatment: (name: string) => Treatment): void {
  for (const entry of readdirSync(from, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    const how = treatment(entry.name);
    if (how === "skip") continue;
    const source = join(entry.parentPath, entry.name);
    const target = join(to, relative(from, source));
    mkdirSync(dirname(target), { recursive: true });
    if (how === "as is") copyFileSync(source, target);
    else writeFileSync(target, how(readFileSync(source, "utf8")));
  }
}
