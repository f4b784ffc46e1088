import { globSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The licence of this Node, which comes with it. Throws when it does not. */
export function nodeLicence(): string {
  const top = join(dirname(process.execPath), "..");
  // Node's own archive, or the npm package `node`.
  const found = globSync(["LICENSE", "node_modules/node-*/LICENSE"], { cwd: top })[0];
  if (found === undefined)
    throw new Error(`${top} has no LICENSE of Node; run the one of this workspace (npm ci)`);
  return join(top, found);
}

/**
 * For Debian's machine-readable `copyright`: a stanza for each npm package below `folder`, and one for each of their licences but
 * Apache-2.0, which the file has already.
 */
export function copyrightStanzas(folder: string): string {
  const manifests = globSync("built/nodeyard/**/node_modules/{*,@*/*}/package.json", { cwd: folder }).sort();
  const licences = new Set<string>();
  const stanzas = manifests.flatMap((path) => {
    const { name, license } = JSON.parse(readFileSync(join(folder, path), "utf8"));
    // Ours are those of "Files: *".
    if (name === "nodeyard" || name.startsWith("@nodeyard/")) return [];
    licences.add(license);
    const holders = holdersOf(join(folder, dirname(path))) ?? [`the authors of ${name}`];
    return [`Files: ${dirname(path)}/*\nCopyright: ${holders.join("\n           ")}\nLicense: ${license}\n`];
  });
  licences.delete("Apache-2.0");
  const texts = [...licences].map(
    (id) => `License: ${id}\n Its text lies beside these files below /usr/lib/nodeyard/node_modules.\n`,
  );
  return ["", ...stanzas, ...texts].join("\n");
}

function holdersOf(folder: string): readonly string[] | undefined {
  const file = readdirSync(folder).find((name) => /^(licen[cs]e|copying)/i.test(name));
  if (file === undefined) return undefined;
  const lines = readFileSync(join(folder, file), "utf8").matchAll(/^\W*copyright (?:\(c\) )?(.*\d{4}.*)$/gim);
  const holders = [...lines].map(([, holder]) => holder!.trim());
  return holders.length === 0 ? undefined : holders;
}
