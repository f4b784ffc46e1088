import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { type Clock, deadline } from "@nodeyard/runtime";
import { run } from "../../edge/run.ts";
import { ImageError } from "../../errors.ts";
import { exists, type Pool } from "./pool.ts";

/** Where a root comes from: an archive, a folder, or a Debian release that is made here once. */
export type ImageSource =
  | { readonly tar: string }
  | { readonly folder: string }
  | { readonly debian: string; readonly packages: readonly string[] };

export interface ImageOptions {
  readonly sources: Readonly<Record<string, ImageSource>>;
  /** Where archives that are made here are kept. */
  readonly cache: string;
  readonly clock: Clock;
  readonly onProgress: (line: string) => void;
}

/** Milliseconds for one image, from nothing to unpacked. */
const LIMIT = 1_200_000;

/** Roots by digest: unpacked once per machine, never written again. */
export class Images {
  readonly #pool: Pool;
  readonly #options: ImageOptions;
  readonly #digests = new Map<string, string>();
  readonly #making = new Map<string, Promise<string>>();

  constructor(pool: Pool, options: ImageOptions) {
    this.#pool = pool;
    this.#options = options;
  }

  /**
   * The folder of an image's root, made if need be. Who waits may give up; the work goes on for the next one. Throws
   * ImageError, CommandError.
   */
  async ensure(name: string, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    const making = this.#making.get(name) ?? this.#begin(name);
    return await new Promise<string>((resolve, reject) => {
      const give = () => reject(signal.reason);
      signal.addEventListener("abort", give, { once: true });
      making.then(resolve, reject).finally(() => signal.removeEventListener("abort", give));
    });
  }

  #begin(name: string): Promise<string> {
    const late = () => new ImageError(`image ${name} was not made within ${LIMIT / 60_000} minutes`);
    const timer = deadline(this.#options.clock, LIMIT, late);
    const making = this.#make(name, timer.signal).finally(() => {
      timer.cancel();
      this.#making.delete(name);
    });
    making.catch(() => undefined);
    this.#making.set(name, making);
    return making;
  }

  async #make(name: string, signal: AbortSignal): Promise<string> {
    const source = Object.hasOwn(this.#options.sources, name) ? this.#options.sources[name] : undefined;
    if (source === undefined) {
      const names = Object.keys(this.#options.sources).join(", ") || "none";
      throw new ImageError(`there is no image ${JSON.stringify(name)}; there is ${names}`);
    }
    const tar = await this.#archive(source, signal);
    const digest = await this.#digest(tar, signal);
    const path = join(this.#pool.folder, "images", digest);
    if (await exists(path)) return path;
    this.#options.onProgress(`image ${name}: unpacking sha256:${digest}`);
    const half = `${path}.new`;
    if (await exists(half)) await run(["btrfs", "subvolume", "delete", half], { signal });
    await run(["btrfs", "subvolume", "create", half], { signal });
    try {
      await run(["tar", "-x", "--numeric-owner", "--xattrs", "-p", "-f", tar, "-C", half], { signal });
      await this.#check(name, half);
      await run(["btrfs", "property", "set", half, "ro", "true"], { signal });
      await rename(half, path);
    } catch (error) {
      const cleanUp = deadline(this.#options.clock, 60_000, () => new ImageError(`${half} stays`));
      await run(["btrfs", "subvolume", "delete", half], { signal: cleanUp.signal }).catch(() => undefined);
      cleanUp.cancel();
      throw error;
    }
    return path;
  }

  async #check(name: string, root: string): Promise<void> {
    for (const program of ["usr/sbin/sshd", "usr/bin/setpriv"])
      if (!(await exists(join(root, program)))) throw new ImageError(`image ${name} has no /${program}`);
  }

  /** The archive to unpack: the operator's, or one that is made here. */
  async #archive(source: ImageSource, signal: AbortSignal): Promise<string> {
    if ("tar" in source) return source.tar;
    const { cache } = this.#options;
    await mkdir(cache, { recursive: true, mode: 0o700 });
    const key = createHash("sha256").update(JSON.stringify(source)).digest("hex").slice(0, 16);
    const half = join(cache, `${key}.new.tar`);
    if ("folder" in source) {
      // A folder has no digest; its archive in a fixed order has. The content decides, so it is packed each time.
      const { folder } = source;
      await run(["tar", "-c", "--sort=name", "--numeric-owner", "--xattrs", "-f", half, "-C", folder, "."], {
        signal,
      });
      const done = join(cache, `${key}.tar`);
      await rename(half, done);
      return done;
    }
    const done = join(cache, `debian-${source.debian}-${key}.tar`);
    if (await exists(done)) return done;
    const include = ["openssh-server", "iproute2", "sudo", ...source.packages].join(",");
    const step = (line: string) => {
      if (/^[IW]: /.test(line)) this.#options.onProgress(`image debian ${source.debian}: ${line.slice(3)}`);
    };
    await run(
      [
        "mmdebstrap",
        "--variant=minbase",
        `--include=${include}`,
        source.debian,
        half,
        ...(await aptSources()),
      ],
      { signal, onLine: step },
    );
    await rename(half, done);
    return done;
  }

  async #digest(tar: string, signal: AbortSignal): Promise<string> {
    const info = await stat(tar).catch((cause) => {
      throw new ImageError(`${tar} cannot be read: ${(cause as Error).message}`, { cause });
    });
    const key = `${tar} ${info.ino} ${info.size} ${info.mtimeMs} ${info.ctimeMs}`;
    const known = this.#digests.get(key);
    if (known !== undefined) return known;
    const hash = createHash("sha256");
    await pipeline(createReadStream(tar), hash, { signal });
    const digest = hash.digest("hex");
    this.#digests.set(key, digest);
    return digest;
  }

  /** Archives that a crash left half made. */
  async tidy(): Promise<void> {
    for (const name of await readdir(this.#options.cache).catch(() => []))
      if (name.endsWith(".new.tar")) await rm(join(this.#options.cache, name), { force: true });
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
