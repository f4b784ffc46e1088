import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { chmod, copyFile, mkdir, readFile, rename, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { syncPath } from "@nodeyard/runtime";
import { EnrolError } from "../../errors.ts";
import { writeAtomic } from "../../isolation/edge/files.ts";
import { run } from "../../isolation/edge/run.ts";
import type { Part } from "../parts.ts";
import { hasProgram } from "./look.ts";

/** Files of a bundle: the list of digests, and the Node runtime. */
const LIST = "bundle.json";
const RUNTIME = "node";

/** "*" is a password that no one has. "!" would also lock key logins when sshd runs without PAM. */
const NEW_USER = ["--system", "--no-create-home", "--home-dir", "/", "--shell", "/bin/sh", "--password", "*"];

/** The name of a bundle: its version, and a digest of its programs and its runtime. */
export function bundleName(folder: string): string {
  const list = join(folder, LIST);
  const node = join(folder, RUNTIME);
  if (!existsSync(list) || !existsSync(node))
    throw new EnrolError(
      `${folder} holds no bundle with a runtime; start this through nodeyard sliverd install`,
    );
  const text = readFileSync(list, "utf8");
  const { version } = JSON.parse(text) as { version: string };
  if (!/^[0-9A-Za-z.+-]{1,40}$/.test(version)) throw new EnrolError(`${list} names no version`);
  // Only the size of the runtime: reading 120 MB each time would cost more than it is worth.
  const digest = createHash("sha256")
    .update(`${text} ${process.version} ${statSync(node).size}`)
    .digest("hex");
  return `${version}-${digest.slice(0, 12)}`;
}

/**
 * Makes one part of an enrolment. May be repeated, also after an interruption: what is there already is replaced by the same. Throws
 * EnrolError for what an operator can correct, CommandError for a program that failed. When `signal` aborts, the program that runs is
 * ended.
 */
export async function carryOut(part: Part, signal: AbortSignal): Promise<void> {
  switch (part.kind) {
    case "packages":
      return installPackages(part.names, signal);
    case "programs":
      return putPrograms(part.from, part.path);
    case "user":
      await run(["useradd", ...NEW_USER, part.name], { signal });
      return;
    case "folder":
      await mkdir(part.path, { recursive: true, mode: part.mode });
      return chmod(part.path, part.mode);
    case "file":
      return writeAtomic(part.path, part.text, { mode: part.mode });
    case "link":
      return link(part.path, part.to);
  }
}

/** Throws EnrolError with the names of the packages where there is no apt-get. */
async function installPackages(names: readonly string[], signal: AbortSignal): Promise<void> {
  if (!hasProgram("apt-get"))
    throw new EnrolError(
      `no apt-get here: install the equivalents of these Debian packages by hand: ${names.join(", ")}`,
    );
  await run(["apt-get", "update"], { signal });
  const install = ["apt-get", "install", "-y", "--no-install-recommends", ...names];
  await run(["env", "DEBIAN_FRONTEND=noninteractive", ...install], { signal });
}

/**
 * Installs the programs, completely or not at all: the files of the bundle's list, the list itself, and the runtime. Durable when it
 * resolves.
 */
async function putPrograms(from: string, to: string): Promise<void> {
  const draft = `${to}.new`;
  await rm(draft, { recursive: true, force: true });
  try {
    await mkdir(draft, { mode: 0o755 });
    await copyPrograms(from, draft);
    await rename(draft, to);
  } catch (error) {
    // A full disk must not stay full because of the draft.
    await rm(draft, { recursive: true, force: true }).catch(() => undefined);
    throw error;
  }
  // The rename itself must survive a loss of power, because the link is made next.
  await syncPath(dirname(to));
}

/** Copies each file, makes it durable and compares the digest of the copy, so that a damaged program is never started. */
async function copyPrograms(from: string, to: string): Promise<void> {
  const { files } = JSON.parse(await readFile(join(from, LIST), "utf8")) as { files: Record<string, string> };
  // The runtime comes from the installing machine and is not in the list.
  for (const name of [LIST, RUNTIME, ...Object.keys(files)]) {
    const target = join(to, name);
    await copyFile(join(from, name), target);
    await chmod(target, name === LIST ? 0o644 : 0o755);
    await syncPath(target);
    const wanted = files[name];
    if (wanted === undefined) continue;
    const digest = createHash("sha256")
      .update(await readFile(target))
      .digest("hex");
    if (digest !== wanted) throw new EnrolError(`${name} of the bundle is damaged; copy it again`);
  }
  await syncPath(to);
}

/** Replaces a link in one step: programs that are started meanwhile find the old or the new ones. */
async function link(path: string, to: string): Promise<void> {
  const draft = `${path}.new`;
  await rm(draft, { force: true });
  await mkdir(join(path, ".."), { recursive: true });
  await symlink(to, draft);
  await rename(draft, path);
  if (!existsSync(path)) throw new EnrolError(`${path} is a broken link: ${to} does not exist`);
}
