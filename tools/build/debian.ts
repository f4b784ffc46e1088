import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemdUnit } from "@nodeyard/sliver";
import { writeParts } from "./release.ts";

interface Locked {
  readonly dev?: boolean;
  readonly link?: boolean;
  readonly resolved?: string;
}

/**
 * Builds the Debian packages of `packaging/debian` from built packages, the versions in package-lock.json, and this Node. Returns the files
 * in `folder`. Throws when debhelper is missing or fails, which it says itself. `version`: of the packages.
 */
export function debianPackages(root: string, bundle: string, folder: string, version: string): string[] {
  mkdirSync(folder, { recursive: true });
  const work = mkdtempSync(join(root, ".tmp", "debian-"));
  try {
    const source = join(work, "nodeyard");
    const built = join(source, "built");
    cpSync(join(root, "packaging/debian"), join(source, "debian"), { recursive: true });
    writeFileSync(join(source, "debian/nodeyard-sliverd.service"), systemdUnit());
    writeFileSync(join(source, "debian/changelog"), changelog(version));
    copyProgram(root, join(built, "nodeyard"));
    cpSync(join(root, "packaging/debian/nodeyard.sh"), join(built, "nodeyard/nodeyard"));
    const sliverd = join(built, "nodeyard-sliverd/package");
    cpSync(bundle, sliverd, { recursive: true });
    cpSync(process.execPath, join(sliverd, "node"));
    const documents = join(built, "doc");
    writeParts(root, documents);
    for (const file of ["README.md", "CHANGELOG.md", "docs/how-to/install.md"])
      cpSync(join(root, file), join(documents, file.split("/").at(-1)!));
    for (const file of readdirSync(join(root, "examples")).filter((name) => name.endsWith(".yaml")))
      cpSync(join(root, "examples", file), join(built, "examples", file));
    // Everything is here already: no check of what a builder of Debian would have installed for it.
    const words = ["--build=binary", "--no-check-builddeps", "--no-sign"];
    execFileSync("dpkg-buildpackage", words, { cwd: source, stdio: ["ignore", "pipe", "inherit"] });
    const files = readdirSync(work).filter((name) => name.endsWith(".deb"));
    for (const file of files) cpSync(join(work, file), join(folder, file));
    return files.map((file) => join(folder, file));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Node, and below `node_modules` the built packages with everything that they need, as the lock file has it. */
export function copyProgram(root: string, target: string): void {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, Locked>>;
  };
  for (const [path, { dev, link, resolved }] of Object.entries(lock.packages)) {
    if (!path.startsWith("node_modules/") || dev) continue;
    cpSync(join(root, link ? `${resolved}/dist` : path), join(target, path), { recursive: true });
  }
  cpSync(process.execPath, join(target, "node"));
}

function changelog(version: string): string {
  return `nodeyard (${version}) unstable; urgency=medium

  * Release. What changed: CHANGELOG.md beside this file.

 -- Nodeyard <nodeyard@localhost.localdomain>  ${new Date().toUTCString().replace("GMT", "+0000")}
`;
}
