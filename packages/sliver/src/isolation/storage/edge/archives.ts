import { mkdir, opendir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../../edge/run.ts";
import { ImageError } from "../../errors.ts";
import { archiveName, debianCommand, type ImageSource } from "../source.ts";
import { exists } from "./pool.ts";

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
  async ensure(source: ImageSource, signal: AbortSignal): Promise<string> {
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
    source: Extract<ImageSource, { readonly debian: string }>,
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
