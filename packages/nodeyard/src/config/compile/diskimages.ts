import type { Reader } from "@nodeyard/driver";
import type { DiskimageConfig } from "../types.ts";

/** What is one part of a path, in the tree and on disk. */
const IN_PATHS = /^(?!\.{1,2}$)[^/\p{Cc}]+$/u;
const MEND = 'write it without "/" and control characters';

const DEFAULTS = { username: "zuul", pythonPath: "auto", shellType: null };

/** Non-abstract diskimages by name; of two with one name the last counts. */
export function compileDiskimages(main: Reader): ReadonlyMap<string, DiskimageConfig> {
  const entries = new Map<string, Reader>();
  for (const from of main.mappings("diskimages", true)) {
    const name = from.needed("name");
    if (name === undefined) continue;
    if (entries.has(name)) from.warn("name", `repeats diskimage ${name}; the last one counts`);
    entries.set(name, from);
  }
  const compiled = new Map<string, DiskimageConfig>();
  for (const [name, from] of entries) {
    if (from.flag("abstract", false)) continue;
    if (!IN_PATHS.test(name))
      from.error(
        "name",
        `is ${JSON.stringify(name)}, which names a folder on disk and a path in the tree; ${MEND}`,
      );
    compiled.set(name, { name, ...inherited(from, entries) });
  }
  return compiled;
}

/** Values from the root of the chain of parents down to the entry; empty ones do not override. */
function inherited(leaf: Reader, entries: ReadonlyMap<string, Reader>): Omit<DiskimageConfig, "name"> {
  let values: Omit<DiskimageConfig, "name"> = DEFAULTS;
  for (const from of chainOf(leaf, entries, true)) {
    values = {
      username: from.text("username", null) || values.username,
      pythonPath: from.text("python-path", null) || values.pythonPath,
      shellType: from.text("shell-type", null) || values.shellType,
    };
  }
  return values;
}

/** The entry and its parents, the root first. With `report`, what is wrong with the chain is told. */
export function chainOf(
  leaf: Reader,
  entries: ReadonlyMap<string, Reader>,
  report: boolean,
): readonly Reader[] {
  const chain: Reader[] = [];
  for (let from: Reader | undefined = leaf; from !== undefined; ) {
    if (chain.includes(from)) {
      if (report) leaf.error("parent", "leads back to the image itself; break the circle");
      break;
    }
    chain.unshift(from);
    const parent: string | null = from.text("parent", null);
    const next: Reader | undefined = parent === null ? undefined : entries.get(parent);
    if (parent !== null && next === undefined && report)
      from.error(
        "parent",
        `names parent ${parent} of ${from.text("name", "")}, which does not exist; add it, or remove the key`,
      );
    from = next;
  }
  return chain;
}
