import { createHash } from "node:crypto";
import type { Stats } from "node:fs";
import { lstat, mkdir, opendir, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { CommandError, ImageError } from "../../../errors.ts";
import { run } from "../../edge/run.ts";
import { type AccountFiles, MEMORY, unpackInJail } from "./jail.ts";
import { exists } from "./pool.ts";
import type { RegistryImage } from "./registry.ts";

/** Source of an image's root: an archive, a folder, or a Debian release that this machine builds once. */
export type ImageSource =
  | {
      readonly tar: string;
      /** SHA-256 that the archive must have, in hexadecimal. Absent: any archive at that path is accepted. */
      readonly sha256?: string | undefined;
    }
  | { readonly folder: string }
  | { readonly debian: string; readonly packages: readonly string[] }
  | LayeredSource;

/** An image in layers: an OCI layout, as a folder or in an archive, or of a registry. */
export type LayeredSource =
  | { readonly oci: string /** Which image, where there are several. */; readonly tag?: string | undefined }
  | RegistryImage;

/** What has one archive. */
export type ArchiveSource = Exclude<ImageSource, LayeredSource>;

/** Name of an image that is requested by content: the digest of its archive. */
export const IMAGE_DIGEST = /^sha256:([0-9a-f]{64})$/;

/** Names of images on a machine. Files whose names end in `.new` are incomplete. */
export const IMAGE_NAME = /^(?!.*\.new$)[a-z0-9][a-z0-9._-]{0,63}$/;

/** Packages in every image that is built here: without them a user could not log in to a sliver or work in it. */
const ALWAYS = ["openssh-server", "iproute2", "sudo"];

/** File name of an archive that is built here. Equal sources share one archive. */
export function archiveName(source: Exclude<ArchiveSource, { readonly tar: string }>): string {
  const key = createHash("sha256").update(JSON.stringify(source)).digest("hex").slice(0, 16);
  return "debian" in source ? `debian-${source.debian}-${key}.tar` : `${key}.tar`;
}

/** Arguments of mmdebstrap that build a release's archive at `target` from these files of apt sources. */
export function debianCommand(
  { debian, packages }: { readonly debian: string; readonly packages: readonly string[] },
  target: string,
  aptSources: readonly string[],
): [string, ...string[]] {
  const include = [...ALWAYS, ...packages].join(",");
  return ["mmdebstrap", "--variant=minbase", `--include=${include}`, debian, target, ...aptSources];
}

/** Options of `Archives`. */
export interface ArchiveOptions {
  /** Folder for the archives that are built here. */
  readonly cache: string;
  readonly onProgress: (line: string) => void;
}

/** End of an archive's file name until the archive is complete. */
const HALF = ".new.tar";
/** pax headers contain access and change times and tar's process number. Without them equal trees give equal archives, so equal digests. */
const SAME_AGAIN = "exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime";
const SCRATCH = "mmdebstrap.new";

/** The archives that images are unpacked from: those of the operator, and those that are built here and kept. */
export class Archives {
  readonly #options: ArchiveOptions;
  readonly #digests = new Map<string, string>();

  constructor(options: ArchiveOptions) {
    this.#options = options;
  }

  /** The file of an archive, built when necessary. Equal sources are built one at a time. Throws ImageError, CommandError. */
  async ensure(source: ArchiveSource, signal: AbortSignal): Promise<string> {
    if ("tar" in source) return source.tar;
    // Checked first: an error of tar would count as temporary and would be retried for ever.
    if ("folder" in source) await demandFolder(source.folder);
    const { cache } = this.#options;
    await mkdir(cache, { recursive: true, mode: 0o700 });
    const name = archiveName(source);
    const done = join(cache, name);
    const half = join(cache, name.replace(/\.tar$/, HALF));
    if ("folder" in source) {
      // A folder has no digest, but its archive in a fixed order has one. The digest depends on the content, so the folder is packed each
      // time.
      const order = ["--sort=name", "--numeric-owner", "--xattrs", `--pax-option=${SAME_AGAIN}`];
      await run(["tar", "-c", ...order, "-f", half, "-C", source.folder, "."], {
        signal,
        diesWithUs: true,
      });
    } else {
      if (await exists(done)) return done;
      await this.#debian(source, half, signal);
    }
    await rename(half, done);
    return done;
  }

  /** The digest of an archive, which is read again only after it has changed. Throws ImageError, CommandError. */
  async digest(tar: string, signal: AbortSignal): Promise<string> {
    const key = `${tar} ${versionOf(await statOf(tar))}`;
    const digest = this.#digests.get(key) ?? (await sha256sum(tar, signal));
    this.#digests.set(key, digest);
    return digest;
  }

  /** Removes archives that a crash left incomplete. */
  async tidy(): Promise<void> {
    const { cache } = this.#options;
    for (const name of await readdir(cache).catch(() => []))
      if (name.endsWith(HALF) || name === SCRATCH)
        await rm(join(cache, name), { recursive: true, force: true });
  }

  async #debian(
    source: Extract<ArchiveSource, { readonly debian: string }>,
    half: string,
    signal: AbortSignal,
  ): Promise<void> {
    const scratch = join(this.#options.cache, SCRATCH);
    await rm(scratch, { recursive: true, force: true });
    await mkdir(scratch, { mode: 0o711 });
    const onLine = (line: string) => {
      if (/^[IWE]: /.test(line)) this.#options.onProgress(`image debian ${source.debian}: ${line.slice(3)}`);
    };
    try {
      // Namespaces of its own: when mmdebstrap is killed, the kernel removes its mounts and processes.
      await run(
        [
          ...(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"] as const),
          ...["env", `TMPDIR=${scratch}`, ...debianCommand(source, half, await aptSources())],
        ],
        { signal, onLine, diesWithUs: true },
      );
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  }
}

/** Digest of a file. A program of its own can be killed, and keeps the event loop free. */
export async function sha256sum(path: string, signal: AbortSignal): Promise<string> {
  const said = await run(["sha256sum", "-z", path], { signal, diesWithUs: true, memory: MEMORY });
  return said.slice(0, 64);
}

/** Status of a file. Throws ImageError. */
export function statOf(path: string): Promise<Stats> {
  return stat(path).catch((cause) => {
    throw new ImageError(`${path} cannot be read: ${(cause as Error).message}`, { cause });
  });
}

/** A text that changes when the file changes. */
export function versionOf({ ino, size, mtimeMs, ctimeMs }: Stats): string {
  return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
}

async function demandFolder(path: string): Promise<void> {
  try {
    await (await opendir(path)).close();
  } catch (cause) {
    throw new ImageError(`${path} cannot be read: ${(cause as Error).message}`, { cause });
  }
}

/** The machine's own apt sources. Slivers get their packages from the same mirrors as the machine. */
async function aptSources(): Promise<string[]> {
  const folder = "/etc/apt/sources.list.d";
  const names = (await readdir(folder).catch(() => [])).filter((name) => /\.(?:list|sources)$/.test(name));
  const files = ["/etc/apt/sources.list", ...names.map((name) => join(folder, name))];
  const found: string[] = [];
  for (const file of files) if (await exists(file)) found.push(file);
  return found;
}

/** Programs that a root must have: sshd for logins, and setpriv, with which the init script becomes the sliver's user. */
const NEEDED = ["usr/sbin/sshd", "usr/bin/setpriv"];

/**
 * Unpacks archives (one complete root, or the layers of an image in their order) into a new subvolume. Archives may be hostile (rule 11):
 * GNU tar takes names as relative, refuses names with `..`, does not write through links that it unpacked, and fails when it left something
 * out. It runs in a jail (jail.ts). Only regular files, folders and links are kept: LXC makes a sliver's devices, and a FIFO would block
 * every process that reads it. Host keys are removed, because all copies would share them. Set-uid programs stay set-uid: their ids belong
 * to no user of this machine, and only root can enter the pool. The image takes at most `room` bytes. Throws ImageError, CommandError.
 */
export async function unpack(
  name: string,
  archives: readonly string[],
  root: string,
  room: number,
  signal: AbortSignal,
): Promise<AccountFiles> {
  await run(["btrfs", "subvolume", "create", root], { signal });
  await run(["btrfs", "qgroup", "limit", String(room), root], { signal });
  const accounts = await unpackInJail(archives, root, signal).catch((cause) => {
    if (!(cause instanceof CommandError)) throw cause;
    throw new ImageError(
      `image ${name} cannot be unpacked from ${archives.join(", ").slice(0, 500)}: ${cause.message}`,
      { cause },
    );
  });
  for (const program of NEEDED)
    if (!(await isWithin(root, program)))
      throw new ImageError(
        `image ${name} has no /${program}, without which it is no machine: install openssh-server and util-linux in it`,
      );
  return accounts;
}

/** Whether the image itself contains the file. A link of an image is never followed, because it could lead to the host's files. */
async function isWithin(root: string, path: string): Promise<boolean> {
  let at = root;
  for (const part of path.split("/")) {
    at = join(at, part);
    const info = await lstat(at).catch(() => undefined);
    if (info === undefined) return false;
    // /usr/sbin is a link to /usr/bin in some systems. The link is valid inside of the sliver and is not followed from here.
    if (info.isSymbolicLink()) return true;
  }
  return true;
}
