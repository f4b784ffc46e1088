import { createHash, type Hash } from "node:crypto";
import { lstat, readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import type { ImageSettings } from "@nodeyard/config";

/** Files beneath one element, at most: more is no element, but a folder that was named by mistake. */
const MOST_FILES = 10_000;

/**
 * A digest of an image's sources: its settings, and all files of its elements and their dependencies that are in `elementsDir`
 * (folders joined by colons, as in ELEMENTS_PATH). Elements of diskimage-builder itself are not included; they change with its
 * package. Rejects where something of it cannot be read.
 */
export async function digestSources(image: ImageSettings, elementsDir: string | null): Promise<string> {
  const hash = createHash("sha256");
  const { elements, env, release, dibCommand, command } = image;
  const sorted = Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1));
  hash.update(JSON.stringify({ elements, env: sorted, release, dibCommand, command }));
  if (command?.[0]?.startsWith("/")) await addTree(hash, command[0], "command", { left: 1 });
  const folders = (elementsDir ?? "").split(":").filter((folder) => folder !== "");
  const seen = new Set<string>();
  const queue = [...elements];
  for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
    if (seen.has(name)) continue;
    seen.add(name);
    const folder = await firstWith(folders, name);
    if (folder === undefined) continue;
    await addTree(hash, folder, name, { left: MOST_FILES });
    queue.push(...(await words(join(folder, "element-deps"))));
  }
  return hash.digest("hex");
}

/** Adds path, kind, mode and content of everything beneath, in an order that does not depend on the disk. Links are not followed. */
async function addTree(hash: Hash, path: string, name: string, budget: { left: number }): Promise<void> {
  if (--budget.left < 0) throw new Error(`${path} is part of an element with more than ${MOST_FILES} files`);
  const facts = await lstat(path);
  hash.update(JSON.stringify([name, facts.mode]));
  if (facts.isSymbolicLink()) hash.update(await readlink(path));
  else if (facts.isFile()) hash.update(await readFile(path));
  else if (facts.isDirectory())
    for (const inner of (await readdir(path)).sort())
      await addTree(hash, join(path, inner), `${name}/${inner}`, budget);
}

/** The folder of an element; undefined: it is one of diskimage-builder's own. The first folder of the path wins. */
async function firstWith(folders: readonly string[], name: string): Promise<string | undefined> {
  for (const folder of folders) {
    const path = join(folder, name);
    const found = await lstat(path).catch(() => undefined);
    if (found?.isDirectory()) return path;
  }
  return undefined;
}

/** Lines without comments; none where there is no such file. */
async function words(path: string): Promise<readonly string[]> {
  const text = await readFile(path, "utf8").catch(() => "");
  const lines = text.split("\n").map((line) => line.replace(/#.*/, "").trim());
  return lines.filter((line) => line !== "");
}
