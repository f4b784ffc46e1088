import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, join, relative } from "node:path";
import { systemdUnit } from "@nodeyard/sliver";
import { systemMachine } from "@nodeyard/telemetry/machine";
import { COMPLETIONS, describeProgram } from "nodeyard";
import { copyrightStanzas, nodeLicence } from "./copyright.ts";
import { writeParts } from "./release.ts";

interface Locked {
  readonly dev?: boolean;
  readonly link?: boolean;
  readonly resolved?: string;
}

/** Documents for /usr/share/doc. */
const DOCUMENTS = ["README.md", "docs/how-to/install.md", "docs/how-to/alerts.md"];

/**
 * Builds the Debian packages of `packaging/debian` from built packages, the versions in package-lock.json, and this Node. Returns the files
 * in `folder`. Throws when debhelper fails, which it says itself. `version`: of the packages.
 */
export async function debianPackages(
  root: string,
  bundle: string,
  folder: string,
  version: string,
): Promise<string[]> {
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
    cpSync(nodeLicence(), join(documents, "LICENSE.node"));
    // By another name: debhelper would take it for a changelog of Debian's kind.
    cpSync(join(root, "CHANGELOG.md"), join(documents, "release-notes.md"));
    for (const file of DOCUMENTS) cpSync(join(root, file), join(documents, file.split("/").at(-1)!));
    cpSync(join(root, "packaging/monitoring"), join(built, "monitoring"), { recursive: true });
    for (const [name, folder] of [
      ["nodeyard", "nodeyard/cli"],
      ["sliver", "slivers/manager"],
    ] as const)
      cpSync(join(root, "packages", folder, "dist/man"), join(built, "man", name), { recursive: true });
    mkdirSync(join(built, "completion"));
    const program = await describeProgram(systemMachine());
    // By the names that each shell looks for.
    for (const [name, shell] of Object.entries({
      nodeyard: "bash",
      _nodeyard: "zsh",
      "nodeyard.fish": "fish",
    } as const))
      writeFileSync(join(built, "completion", name), COMPLETIONS[shell](program));
    appendFileSync(join(source, "debian/copyright"), copyrightStanzas(source));
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

/** What a package has at its top, or anywhere, that this program does not read: tests, documents, sources, programs of its own. */
const UNREAD_TOP =
  /^(bin|bin\.m?js|test|tests|bench|benchmark|benchmarks|docs|examples|integration|man|scripts|spec)$/;
const UNREAD_FILES = /^\.|\.(map|html|[cm]?ts)$/;
/** Of what our own packages have: the page is read. */
const UNREAD_OURS = /^\.|\.(map|[cm]?ts)$/;

/** Node, and below `node_modules` the built packages with everything that they need, as the lock file has it. */
export function copyProgram(root: string, target: string): void {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, Locked>>;
  };
  for (const [path, { dev, link, resolved }] of Object.entries(lock.packages)) {
    if (!path.startsWith("node_modules/") || dev) continue;
    const from = join(root, link ? `${resolved}/dist` : path);
    // A private package is a part of those that need it.
    if (link && JSON.parse(readFileSync(join(root, resolved!, "package.json"), "utf8")).private) continue;
    const unread = link ? UNREAD_OURS : UNREAD_FILES;
    const filter = (file: string) => {
      const name = relative(from, file);
      if (link && /^site(\/|$)/.test(name)) return true;
      return !UNREAD_TOP.test(name) && (name === "" || !unread.test(basename(name)));
    };
    cpSync(from, join(target, path), { recursive: true, filter });
  }
  cpSync(process.execPath, join(target, "node"));
}

/** As in `control`. The project has no address of its own yet; mail to `example` reaches nobody else by accident. */
const MAINTAINER = "Nodeyard maintainers <maintainers@nodeyard.example>";

function changelog(version: string): string {
  return `nodeyard (${version}) unstable; urgency=medium

  * Release. What changed: release-notes.md beside this file.

 -- ${MAINTAINER}  ${new Date().toUTCString().replace("GMT", "+0000")}
`;
}
