import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { stream } from "./stream.ts";

const REPOSITORY = join(import.meta.dirname, "../../..");

export interface GuestMachine {
  /** The program that is its kernel (kernel.sh). */
  readonly kernel: string;
  /** Disk with its system; what it writes goes to a file in `folder`. */
  readonly root: string;
  /** Disk with the machine of the first job. */
  readonly job?: string;
  /** A folder that it sees as /host. */
  readonly folder: string;
  readonly cores: number;
  readonly mebibytes: number;
}

/**
 * The command that boots it; it ends when the guest does, and the guest ends when it does. The guest has no network device: what runs in it
 * tries to break out of slivers. Throws for a folder that a kernel cannot take as an option.
 */
export function commandLine(machine: GuestMachine): string[] {
  const { kernel, root, job, folder, cores, mebibytes } = machine;
  for (const path of [kernel, root, job ?? "", folder])
    if (/[\s,"]/.test(path)) throw new Error(`${path}: a path of a guest has no space, comma or quote`);
  return [
    // Of processes in a namespace none survives the first one.
    ...["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"],
    kernel,
    ...[`mem=${mebibytes}M`, `ncpus=${cores}`, "seccomp=on", `uml_dir=${folder}`],
    ...[`ubd0=${join(folder, "root.changes")},${root}`, ...(job === undefined ? [] : [`ubd1=${job}`])],
    ...[
      "root=/dev/ubda",
      "rw",
      "init=/nodeyard-boot",
      "quiet",
      "con=null",
      "con0=fd:0,fd:1",
      `host=${folder}`,
    ],
  ];
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
