import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stream } from "./stream.ts";

const REPOSITORY = join(import.meta.dirname, "../../..");
/** The parts of the repository that the sliver suites need; dependencies that are our own packages are links into `packages`. */
const OURS = [
  "package.json",
  "tsconfig.json",
  "LICENSE",
  "elements",
  "examples",
  "packages",
  "testing",
  "tools",
];
const NEEDED = [...OURS, "node_modules"];
const SIZE = "3G";

export interface Work {
  /** Archives of images, so that the guest, which has no network, need not make them, and pools with them. */
  readonly images: readonly string[];
  /** Read by the shell that starts the suites. */
  readonly settings: Readonly<Record<string, string>>;
}

/** A disk with this repository as it is now, in `folder`. */
export async function workDisk(folder: string, { images, settings }: Work): Promise<string> {
  const disk = join(folder, "work.raw");
  const draft = await mkdtemp(join(folder, "work."));
  try {
    for (const path of NEEDED) {
      await mkdir(join(draft, path, ".."), { recursive: true });
      // `cp` in one process: node_modules are many files.
      await stream(
        "cp",
        ["-a", "--reflink=auto", join(REPOSITORY, path), join(draft, path)],
        () => undefined,
      );
    }
    await mkdir(join(draft, "images"));
    await stream("cp", ["--sparse=always", ...images, join(draft, "images")], () => undefined);
    await writeFile(join(draft, "guest.env"), shellText(settings));
    await stream("mkfs.ext4", ["-q", "-F", "-d", draft, disk, SIZE], () => undefined);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return disk;
}

/** A disk with the Debian of the first job and the bundle that makes it a sliver host, in `folder`. Needs root. */
export async function jobDisk(folder: string, onProgress: (line: string) => void): Promise<string> {
  const draft = await mkdtemp(join(folder, "job."));
  const disk = join(folder, "job.raw");
  try {
    await stream(join(REPOSITORY, "testing/slivers/first-job/run.sh"), ["make", draft], onProgress);
    // The pool of slivers is allocated in it, and hardly written to.
    await stream("mkfs.ext4", ["-q", "-F", "-d", draft, disk, "30G"], () => undefined);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return disk;
}

/** An archive of this repository as it is now, for a guest that has its dependencies already. Made in `folder`. */
export async function changes(folder: string, settings: Work["settings"]): Promise<string> {
  const archive = join(folder, "changes.tar");
  await writeFile(join(folder, "guest.env"), shellText(settings));
  const words = ["-c", "-f", archive, "-C", folder, "guest.env", "-C", REPOSITORY, "--exclude=dist", ...OURS];
  await stream("tar", words, () => undefined);
  return archive;
}

/** Variables for a shell. Throws for a value that the shell would interpret. */
export function shellText(settings: Readonly<Record<string, string>>): string {
  return Object.entries(settings)
    .map(([name, value]) => {
      if (!/^[\w ./-]*$/.test(value))
        throw new Error(`${name} is ${JSON.stringify(value)}: letters, digits and ./_- only`);
      return `export ${name}="${value}"\n`;
    })
    .join("");
}
