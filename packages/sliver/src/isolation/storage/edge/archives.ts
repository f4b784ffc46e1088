import { createHash } from "node:crypto";
import { lstat, mkdir, opendir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { CommandError, ImageError } from "../../../errors.ts";
import { run } from "../../edge/run.ts";
import { type AccountFiles, unpackInJail } from "./jail.ts";
import { exists } from "./pool.ts";
import type { RegistryImage } from "./registry.ts";

/** Where a root comes from: an archive, a folder, or a Debian release that is made here once. */
export type ImageSource =
  | {
      readonly tar: string;
      /** What the archive must be, in hexadecimal; absent: whatever is there. */
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

/** Of an image that is asked for by what is in it: the digest of its archive. */
export const IMAGE_DIGEST = /^sha256:([0-9a-f]{64})$/;

/** What every image that is made here holds: a sliver without them cannot be logged in to, or not used. */
const ALWAYS = ["openssh-server", "iproute2", "sudo"];

/** Of an archive that is made here: equal sources share it. */
export function archiveName(source: Exclude<ArchiveSource, { readonly tar: string }>): string {
  const key = createHash("sha256").update(JSON.stringify(source)).digest("hex").slice(0, 16);
  return "debian" in source ? `debian-${source.debian}-${key}.tar` : `${key}.tar`;
}

/** Arguments that make a release's archive at `target`, from these files of apt sources. */
export function debianCommand(
  { debian, packages }: { readonly debian: string; readonly packages: readonly string[] },
  target: string,
  aptSources: readonly string[],
): [string, ...string[]] {
  const include = [...ALWAYS, ...packages].join(",");
  return ["mmdebstrap", "--variant=minbase", `--include=${include}`, debian, target, ...aptSources];
}

/** Where archives are made. */
export interface ArchiveOptions {
  /** Where archives that are made here are kept. */
  readonly cache: string;
  readonly onProgress: (line: string) => void;
}

/** The end of an archive's name until it is whole. */
const HALF = ".new.tar";
/** Without the time at which tar read a file, and its own process number, equal trees are equal archives. */
const SAME_AGAIN = "exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime";
const SCRATCH = "mmdebstrap.new";

/** The archives that images are unpacked from: the operator's, or made here and kept. */
export class Archives {
  readonly #options: ArchiveOptions;

  constructor(options: ArchiveOptions) {
    this.#options = options;
  }

  /** The file of an archive, made if need be; one at a time for equal sources. Throws ImageError, CommandError. */
  async ensure(source: ArchiveSource, signal: AbortSignal): Promise<string> {
    if ("tar" in source) return source.tar;
    // Said here: what tar says of it is an error as any other, which would be tried again and again.
    if ("folder" in source) await demandFolder(source.folder);
    const { cache } = this.#options;
    await mkdir(cache, { recursive: true, mode: 0o700 });
    const name = archiveName(source);
    const done = join(cache, name);
    const half = join(cache, name.replace(/\.tar$/, HALF));
    if ("folder" in source) {
      // A folder has no digest; its archive in a fixed order has. The content decides, so it is packed each time.
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

  /** What a crash left half made. */
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
      // In namespaces of its own: when it is killed, what it had mounted and started is gone with it.
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

async function demandFolder(path: string): Promise<void> {
  try {
    await (await opendir(path)).close();
  } catch (cause) {
    throw new ImageError(`${path} cannot be read: ${(cause as Error).message}`, { cause });
  }
}

/** The machine's own apt sources: it gets its packages from there, and so do slivers. */
async function aptSources(): Promise<string[]> {
  const folder = "/etc/apt/sources.list.d";
  const names = (await readdir(folder).catch(() => [])).filter((name) => /\.(?:list|sources)$/.test(name));
  const files = ["/etc/apt/sources.list", ...names.map((name) => join(folder, name))];
  const found: string[] = [];
  for (const file of files) if (await exists(file)) found.push(file);
  return found;
}

/** Without them a root cannot be a sliver's. */
const NEEDED = ["usr/sbin/sshd", "usr/bin/setpriv"];

/**
 * Unpacks archives, of which one is all or each is a layer, into a new subvolume, and makes that read only. They are hostile: GNU tar takes names as relative, refuses those
 * with `..`, writes through no link that it unpacked, and fails when it left something out; it runs where it could reach nothing else. Only
 * regular files, folders and links stay: a sliver's devices are made by LXC, and a FIFO would hold whoever reads it. Host keys are removed,
 * because all copies would share them. Set-uid programs stay set-uid, for ids that are of no user of this machine, in a pool that only root
 * can enter. It takes at most `room` bytes. Throws ImageError, CommandError.
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
  await run(["btrfs", "property", "set", root, "ro", "true"], { signal });
  return accounts;
}

/** Whether the image has it itself: a link of an image is not followed into the machine's own files. */
async function isWithin(root: string, path: string): Promise<boolean> {
  let at = root;
  for (const part of path.split("/")) {
    at = join(at, part);
    const info = await lstat(at).catch(() => undefined);
    if (info === undefined) return false;
    // /usr/sbin may be a link to /usr/bin, as other systems have it: that is right inside, and is not followed from here.
    if (info.isSymbolicLink()) return true;
  }
  return true;
}
