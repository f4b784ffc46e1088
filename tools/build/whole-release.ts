import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, globSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { gzipSync } from "node:zlib";
import { debianPackages } from "./debian.ts";
import { ociImages, tarOf } from "./oci.ts";
import { pack, writeParts } from "./release.ts";

/**
 * Writes everything that a release of the workspace at `root` is made of into the empty folder `folder`, and returns its files: packages of npm,
 * each with a statement of its provenance, Debian packages, images of containers, the Helm chart, the elements of diskimage-builder, what
 * all of it consists of, the notes, and the digests of these files. Needs root. `commit`: of `demandReleasable`. Throws when a part cannot be
 * made, or the checkout changed meanwhile.
 */
export async function wholeRelease(
  root: string,
  dists: readonly string[],
  bundle: string,
  folder: string,
  version: string,
  commit: string,
): Promise<readonly string[]> {
  if (checkedOut(root) !== commit) throw new Error("the checkout changed during the build: begin again");
  const epoch = Number(git(root, "log", "-1", "--format=%ct", commit));
  for (const tarball of pack(dists, join(folder, "npm")))
    writeFileSync(
      `${tarball}.intoto.json`,
      `${JSON.stringify(provenance(root, tarball, commit), null, 2)}\n`,
    );
  await debianPackages(root, bundle, join(folder, "debian"), version);
  ociImages(root, join(folder, "images"), version);
  archive(join(root, "packaging/helm"), "nodeyard", join(folder, "chart", `nodeyard-${version}.tgz`), epoch);
  const elements = `nodeyard-elements-${version}`;
  archive(join(root, "elements"), elements, join(folder, `${elements}.tar.gz`), epoch);
  writeParts(root, folder);
  writeFileSync(join(folder, "NOTES.md"), notesOf(readFileSync(join(root, "CHANGELOG.md"), "utf8"), version));
  const files = globSync("**", { cwd: folder, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
  const sums = files.map((file) => `${digest("sha256", join(folder, file))}  ${file}\n`);
  writeFileSync(join(folder, "SHA256SUMS"), sums.join(""));
  return [...files, "SHA256SUMS"].map((file) => join(folder, file));
}

/** The commit that `folder` is to become the release of. Throws, before anything is built, when it cannot. */
export function demandReleasable(root: string, folder: string): string {
  if (process.getuid?.() !== 0)
    throw new Error("--release makes images of containers, for which it has to run as root");
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new Error(`${folder} is not empty: name another folder, since a release is all that is in it`);
  return checkedOut(root);
}

/** Throws when something is not committed: the provenance names a commit. */
function checkedOut(root: string): string {
  const changed = git(root, "status", "--porcelain");
  if (changed !== "")
    throw new Error(`commit first, since the provenance names a commit; what is changed or new:\n${changed}`);
  return git(root, "rev-parse", "HEAD");
}

function git(root: string, ...words: readonly string[]): string {
  return execFileSync("git", words, { cwd: root, encoding: "utf8" }).trimEnd();
}

/**
 * The in-toto statement, with SLSA's predicate, that npm accepts for a tarball once it is signed: one subject, by its purl and SHA-512
 * (https://slsa.dev/spec/v1.0/provenance, https://docs.npmjs.com/generating-provenance-statements).
 */
function provenance(root: string, tarball: string, commit: string) {
  const manifest = execFileSync("tar", ["-xOzf", tarball, "package/package.json"], { encoding: "utf8" });
  const { name, version } = JSON.parse(manifest) as { readonly name: string; readonly version: string };
  return {
    _type: "https://in-toto.io/Statement/v1",
    subject: [
      {
        name: `pkg:npm/${name.replace("@", "%40")}@${version}`,
        digest: { sha512: digest("sha512", tarball) },
      },
    ],
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType: "https://nodeyard.example/npm-run-build",
        externalParameters: { command: "npm run build -- --release" },
        resolvedDependencies: [
          { name: "source", digest: { gitCommit: commit } },
          {
            name: "package-lock.json",
            digest: { sha256: digest("sha256", join(root, "package-lock.json")) },
          },
          { name: "node", annotations: { version: process.versions.node } },
        ],
      },
      runDetails: { builder: { id: "https://nodeyard.example/maintainers" } },
    },
  };
}

/** A folder as an archive whose only member is named `name`: the same bytes for the same commit. */
function archive(source: string, name: string, file: string, epoch: number): void {
  const work = `${file}.work`;
  cpSync(source, join(work, name), { recursive: true });
  const tar = tarOf(work, [name], join(work, "archive.tar"), epoch);
  writeFileSync(file, gzipSync(readFileSync(tar)));
  rmSync(work, { recursive: true });
}

/** The part of the changelog about `version`, or what is not released yet. Links into the sources become text: no page stands beside it. */
export function notesOf(changelog: string, version: string): string {
  const parts = changelog.split(/^## /m).slice(1);
  const part =
    parts.find((one) => one.startsWith(version)) ?? parts.find((one) => one.startsWith("Unreleased"));
  if (part === undefined) throw new Error(`CHANGELOG.md has no part "## ${version}"`);
  const body = part.slice(part.indexOf("\n")).trim();
  return `# Nodeyard ${version}\n\n${body.replaceAll(/\[([^\]]*)\]\((?![a-z]+:)[^)]*\)/g, "$1")}\n`;
}

function digest(algorithm: "sha256" | "sha512", file: string): string {
  return createHash(algorithm).update(readFileSync(file)).digest("hex");
}
