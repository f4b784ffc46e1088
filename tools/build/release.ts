import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Packs built packages into `folder`, as they are published. Returns the files, in the order of `dists`. */
export function pack(dists: readonly string[], folder: string): string[] {
  mkdirSync(folder, { recursive: true });
  const said = npm(folder, "pack", "--silent", "--pack-destination", ".", ...dists);
  return said
    .trim()
    .split("\n")
    .map((name) => join(folder, name));
}

interface Component {
  readonly name: string;
  readonly version: string;
  readonly licenses?: readonly {
    readonly license?: { readonly id?: string };
    readonly expression?: string;
  }[];
}

/**
 * Writes what the packages of the workspace at `root` consist of into `folder`: an SBOM in CycloneDX, and a list of names, versions and
 * licences. Throws when a dependency names no licence.
 */
export function writeParts(root: string, folder: string): string[] {
  mkdirSync(folder, { recursive: true });
  const sbom = JSON.parse(npm(root, "sbom", "--sbom-format", "cyclonedx", "--omit", "dev"));
  // npm calls it by the folder of the checkout.
  sbom.metadata.component.name = "nodeyard";
  // Of the moment, and optional: without them two builds of a commit are equal.
  delete sbom.serialNumber;
  delete sbom.metadata.timestamp;
  const lines = (sbom.components as Component[]).map(
    (part) => `${part.name} ${part.version} ${licenceOf(part)}`,
  );
  const files = {
    "sbom.cdx.json": `${JSON.stringify(sbom, null, 2)}\n`,
    "licences.txt": `${lines.join("\n")}\n`,
  };
  return Object.entries(files).map(([name, text]) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  });
}

function licenceOf({ name, version, licenses = [] }: Component): string {
  const ids = licenses.map(({ license, expression }) => license?.id ?? expression);
  if (ids.length === 0 || ids.includes(undefined)) throw new Error(`${name}@${version} names no licence`);
  return ids.join(" AND ");
}

/** The output of npm, run by this Node, since it looks for one in PATH. */
export function npm(cwd: string, ...words: readonly string[]): string {
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` };
  return execFileSync("npm", words, { cwd, env, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}
