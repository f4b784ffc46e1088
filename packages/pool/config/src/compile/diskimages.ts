import { isMapping, Key, Reader, toNumber } from "@nodeyard/driver";
import { type ImageSettings, IN_PATHS, imageTable } from "../diskimage-table.ts";
import type { Secure, Top } from "../table.ts";

type Listed = Top["diskimages"][number];
type Raw = Readonly<Record<string, unknown>>;

/**
 * Read of a whole chain of parents: defaults are applied after the merge, so that a default of a child does not hide a value of
 * its parent.
 */
const imageSection = Key.section(imageTable);

/**
 * Non-abstract diskimages by name, in the order of the file; of two with one name the last counts. `secure`: variables of builds
 * that are secret.
 */
export function compileDiskimages(
  { diskimages }: Pick<Top, "diskimages">,
  secure: Secure | undefined,
): ReadonlyMap<string, ImageSettings> {
  const entries = new Map<string, Listed>();
  for (const entry of diskimages) {
    if (entries.has(entry.name))
      entry.at.warn("name", `repeats diskimage ${entry.name}; the last one counts`);
    entries.set(entry.name, entry);
  }
  const images = new Map<string, ImageSettings>();
  const read = new Set<Listed>();
  for (const [name, leaf] of entries) {
    if (leaf.abstract) continue;
    if (!IN_PATHS.holds(name))
      leaf.at.error(
        "name",
        `is ${JSON.stringify(name)}, which names a folder and a node of the tree; write ${IN_PATHS.write}`,
      );
    const chain = chainOf(leaf, entries);
    // A finding in a parent is reported once at its place, not for each of its children.
    for (const entry of chain.filter((one) => !read.has(one))) imageSection.read(entry.at);
    for (const entry of chain) read.add(entry);
    // Without a report: each entry of the chain has been read, and has reported its own findings.
    const settings = imageSection.read(new Reader(inherited(chain), [], () => {}))!;
    if (settings.command === null && leaf.at.has("build-command"))
      leaf.at.warn(
        "build-command",
        "is empty: diskimage-builder makes the image; write a command, or remove the key",
      );
    images.set(name, { name, ...settings });
  }
  return secure === undefined ? images : withSecrets(images, secure);
}

/** The entry and its parents, the root first. A circle ends where it closes, and is an error of the entry. */
function chainOf(leaf: Listed, entries: ReadonlyMap<string, Listed>): readonly Listed[] {
  const chain: Listed[] = [];
  for (let entry: Listed | undefined = leaf; entry !== undefined; ) {
    if (chain.includes(entry)) {
      leaf.at.error("parent", "leads back to the image itself; break the circle");
      break;
    }
    chain.unshift(entry);
    const { at, name, parent }: Listed = entry;
    entry = parent === null ? undefined : entries.get(parent);
    if (parent !== null && entry === undefined)
      at.error(
        "parent",
        `names parent ${parent} of ${name}, which does not exist; add it, or remove the key`,
      );
  }
  return chain;
}

/** Merges a chain into one mapping, as Nodepool's loader does: an empty value does not override. */
function inherited(chain: readonly Listed[]): Raw {
  const merged: Record<string, unknown> = {};
  for (const { at } of chain) {
    for (const [key, value] of Object.entries(at.raw)) {
      if (isEmpty(key, value)) continue;
      if (key === "elements" && Array.isArray(value))
        // A child adds elements to its parent's, and replaces all other values.
        merged[key] = [...((merged[key] as []) ?? []), ...value];
      else if (key === "env-vars" && isMapping(value)) merged[key] = { ...(merged[key] ?? {}), ...value };
      // A child cannot take back its parent's pause.
      else if (key === "pause") merged[key] = merged[key] || value;
      else merged[key] = value;
    }
  }
  // Metadata is the image's own alone.
  return { ...merged, metadata: chain.at(-1)?.at.raw.metadata };
}

/** A value that does not override a parent's; 0 is one for ages and times. */
function isEmpty(key: string, value: unknown): boolean {
  if (value === null || value === "" || (Array.isArray(value) && value.length === 0)) return true;
  return (key === "rebuild-age" || key === "build-timeout") && toNumber(value) === 0;
}

/** Secret variables may only be for images that are built (docs/contract/config.md, "Secure file"). */
function withSecrets(
  images: ReadonlyMap<string, ImageSettings>,
  secure: Secure,
): ReadonlyMap<string, ImageSettings> {
  const whole = new Map(images);
  for (const { at, name, env } of secure.diskimages) {
    const image = images.get(name);
    if (image === undefined)
      at.error(
        "name",
        `names diskimage ${name}, which the main file does not build; add it there, or remove it here`,
      );
    if (!at.has("env-vars")) at.error("env-vars", "must be a mapping");
    if (image !== undefined) whole.set(name, { ...image, env: { ...image.env, ...env } });
  }
  return whole;
}
