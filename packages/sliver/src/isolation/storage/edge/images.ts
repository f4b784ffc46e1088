import { randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { abortable, type Clock, deadline, messageOf } from "@nodeyard/runtime";
import { ImageError, PoolFullError } from "../../../errors.ts";
import { writeAtomic } from "../../edge/files.ts";
import { run } from "../../edge/run.ts";
import {
  type ArchiveSource,
  Archives,
  IMAGE_DIGEST,
  IMAGE_NAME,
  type ImageSource,
  type LayeredSource,
  unpack,
} from "./archives.ts";
import { type AccountFiles, MEMORY, tidyInJail } from "./jail.ts";
import { readLayout } from "./layout.ts";
import { Layouts, type Noted, roomFor, statOf, versionOf } from "./layouts.ts";
import { exists, type Pool } from "./pool.ts";
import { freeSubvolume, imagesInUse } from "./subvolumes.ts";

/** Options of `Images`. */
export interface ImageOptions {
  readonly sources: Readonly<Record<string, ImageSource>>;
  /** Folder for the archives that are built here. */
  readonly cache: string;
  readonly clock: Clock;
  readonly onProgress: (line: string) => void;
}

/** Milliseconds to make one image, with building its archive. */
const LIMIT = 1_200_000;
/** Milliseconds to remove one image. */
const REMOVAL = 60_000;

/** Roots by digest. Each is unpacked once per machine, never changed, and removed when no configured name and no sliver uses it. */
export class Images {
  readonly #pool: Pool;
  readonly #options: ImageOptions;
  readonly #archives: Archives;
  readonly #digests = new Map<string, string>();
  readonly #making = new Map<string, Promise<string>>();
  readonly #layouts: Layouts;
  /** By digest, because several names may have the same archive. */
  readonly #unpacking = new Map<string, Promise<void>>();

  constructor(pool: Pool, options: ImageOptions) {
    this.#pool = pool;
    this.#options = options;
    this.#archives = new Archives(options);
    this.#layouts = new Layouts(pool, options);
  }

  /**
   * The folder of the root of an image, named by the configuration or as `sha256:<digest>`; made when necessary. `signal` ends the caller's
   * wait only: the work goes on, so that the next caller finds the image. Throws ImageError, CommandError.
   */
  async ensure(name: string, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    const making = this.#making.get(name) ?? this.#begin(name);
    return await abortable(making, signal);
  }

  /** The accounts of an image that `ensure` returned, as they were when the image was unpacked. */
  async accounts(path: string): Promise<AccountFiles> {
    return JSON.parse(await readFile(accountsOf(path), "utf8")) as AccountFiles;
  }

  /**
   * Makes a copy of a sliver's root an image, in the place of an earlier one of that name. `disk`: KiB that the sliver may take, and so the
   * image from now on. Throws ImageError, PoolFullError, CommandError.
   */
  async snapshot(
    name: string,
    root: string,
    { user, disk }: { readonly user: string; readonly disk: number },
    signal: AbortSignal,
  ): Promise<void> {
    if (Object.hasOwn(this.#options.sources, name))
      throw new ImageError(`image ${name} is made of what sliverd.json says; choose another name`);
    if (disk * 1024 > (await roomFor(name, this.#pool)))
      throw new PoolFullError(`image ${name} may take ${disk} KiB, which the pool has not left`);
    // No archive has that digest: what a sliver was has none.
    const id = randomBytes(32).toString("hex");
    const path = join(this.#folder, id);
    const making = (async () => {
      await run(["btrfs", "subvolume", "snapshot", root, `${path}.new`], { signal });
      await this.#finish(name, path, signal, () => tidyInJail(`${path}.new`, user, signal));
      await mkdir(this.#snapshots, { recursive: true });
      await writeAtomic(join(this.#snapshots, name), `${id}\n`);
      return path;
    })();
    // So that nothing half made is taken for what a crash left.
    this.#making.set(id, making);
    await making.finally(() => this.#making.delete(id));
    await this.retire(signal);
  }

  /** Takes the name from an image that was made of a sliver. Throws ImageError. */
  async forget(name: string, signal: AbortSignal): Promise<void> {
    if ((await this.#noted(name, this.#snapshots)) === undefined)
      throw new ImageError(
        `there is no snapshot ${name}; there is ${(await this.#snapshotNames()).join(", ") || "none"}`,
      );
    await rm(join(this.#snapshots, name));
    await this.retire(signal);
  }

  /** Removes what a crash left incomplete. No image may be in the making during this call. */
  async tidy(signal: AbortSignal): Promise<void> {
    await this.#archives.tidy();
    await this.#freeHalves(signal);
  }

  /**
   * Removes images that no configured name refers to and no sliver is a copy of, and incomplete ones whose removal failed before. Must not
   * run while a sliver is being made: until the sliver's subvolume exists, nothing shows that its image is in use.
   */
  async retire(signal: AbortSignal): Promise<void> {
    if (this.#making.size > 0) return;
    await this.#freeHalves(signal);
    const keep = new Set<string>();
    for (const name of await readdir(this.#names).catch(() => [])) {
      if (!Object.hasOwn(this.#options.sources, name)) await rm(join(this.#names, name), { force: true });
      else keep.add((await this.#noted(name))?.digest ?? "");
    }
    for (const name of await this.#snapshotNames())
      keep.add((await this.#noted(name, this.#snapshots))?.digest ?? "");
    const rest = (await this.list()).filter((digest) => !keep.has(digest));
    if (rest.length === 0) return;
    const used = imagesInUse(await this.#pool.subvolumes(signal));
    for (const digest of rest) {
      if (used.has(digest)) continue;
      this.#options.onProgress(`image sha256:${digest}: unused, deleting it`);
      await this.#free(join(this.#folder, digest), signal);
    }
  }

  /** Digests of all unpacked images. */
  async list(): Promise<string[]> {
    const names = await readdir(this.#folder).catch(() => []);
    return names.filter((name) => /^[0-9a-f]{64}$/.test(name));
  }

  /** Removes all images from a machine without slivers. */
  async remove(signal: AbortSignal): Promise<void> {
    await this.tidy(signal);
    for (const digest of await this.list()) await this.#free(join(this.#folder, digest), signal);
    for (const folder of [this.#names, this.#snapshots, this.#folder, join(this.#pool.folder, "accounts")])
      await rm(folder, { recursive: true, force: true });
  }

  get #folder(): string {
    return join(this.#pool.folder, "images");
  }

  /** Folder with the last digest of each configured name. It saves reading a whole archive to find out whether an image is still wanted. */
  get #names(): string {
    return join(this.#pool.folder, "names");
  }

  /** The id that each snapshot has, by its name. */
  get #snapshots(): string {
    return join(this.#pool.folder, "snapshots");
  }

  #snapshotNames(): Promise<string[]> {
    return readdir(this.#snapshots).catch(() => []);
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
    const [, wanted] = IMAGE_DIGEST.exec(name) ?? [];
    if (wanted !== undefined) return await this.#find(wanted, signal);
    const source = Object.hasOwn(this.#options.sources, name) ? this.#options.sources[name] : undefined;
    if (source === undefined) {
      const snapshot = IMAGE_NAME.test(name) ? await this.#noted(name, this.#snapshots) : undefined;
      if (snapshot !== undefined) return await this.#find(snapshot.digest, signal);
      const all = [...Object.keys(this.#options.sources), ...(await this.#snapshotNames())];
      const names = all.join(", ") || "none";
      throw new ImageError(`there is no image ${JSON.stringify(name)}; there is ${names}`);
    }
    const made =
      "oci" in source || "registry" in source
        ? await this.#ofLayout(name, source, signal)
        : { digest: await this.#ofArchive(name, source, signal), from: "" };
    await mkdir(this.#names, { recursive: true });
    await writeAtomic(join(this.#names, name), `${made.digest}\n${made.from}\n`);
    return join(this.#folder, made.digest);
  }

  async #ofArchive(name: string, source: ArchiveSource, signal: AbortSignal): Promise<string> {
    const tar = await this.#archives.ensure(source, signal);
    const digest = await this.#digest(tar, signal);
    if ("tar" in source && source.sha256 !== undefined && source.sha256 !== digest)
      throw new ImageError(
        `image ${name}: ${tar} has sha256 ${digest}, and should have ${source.sha256}; replace the file or the digest`,
      );
    await this.#once(name, digest, [tar], signal);
    return digest;
  }

  /** The digest is that of its manifest. */
  async #ofLayout(name: string, source: LayeredSource, signal: AbortSignal): Promise<Noted> {
    const noted = await this.#noted(name);
    const known =
      noted !== undefined && (await isWhole(join(this.#folder, noted.digest))) ? noted : undefined;
    const take = async (folder: string) => {
      const { digest, layers } = await readLayout(folder, "oci" in source ? source.tag : undefined);
      if (await isWhole(join(this.#folder, digest))) return digest;
      for (const { file, sha256 } of layers)
        if ((await sha256sum(file, signal)) !== sha256)
          throw new ImageError(`image ${name}: layer ${file} is damaged: it has another sha256`);
      const files = layers.map(({ file }) => file);
      await this.#once(name, digest, files, signal);
      return digest;
    };
    return await this.#layouts.resolve(name, source, known, take, signal);
  }

  /** What a name stood for last. */
  async #noted(name: string, folder = this.#names): Promise<Noted | undefined> {
    const text = await readFile(join(folder, name), "utf8").catch(() => undefined);
    const [digest, from = ""] = text?.split("\n") ?? [];
    return digest === undefined ? undefined : { digest, from };
  }

  /** One at a time for equal digests. */
  async #once(name: string, digest: string, archives: readonly string[], signal: AbortSignal): Promise<void> {
    const unpacking =
      this.#unpacking.get(digest) ??
      this.#unpack(name, archives, join(this.#folder, digest), signal).finally(() =>
        this.#unpacking.delete(digest),
      );
    this.#unpacking.set(digest, unpacking);
    await unpacking;
  }

  /** Finds an image by its digest: an unpacked one, or the archive of a configured name. No archive is built for this. */
  async #find(wanted: string, signal: AbortSignal): Promise<string> {
    const path = join(this.#folder, wanted);
    if (await isWhole(path)) return path;
    const there: string[] = [];
    for (const [name, source] of Object.entries(this.#options.sources)) {
      const digest = await this.#known(name, source, signal);
      if (digest === wanted) return await this.ensure(name, signal);
      there.push(digest === undefined ? name : `${name} (sha256:${digest})`);
    }
    throw new ImageError(`there is no image sha256:${wanted}; there is ${there.join(", ") || "none"}`);
  }

  /** Digest of a name's archive. Undefined when the archive has not been built yet or cannot be read. */
  async #known(name: string, source: ImageSource, signal: AbortSignal): Promise<string | undefined> {
    if ("tar" in source) return source.sha256 ?? (await this.#digest(source.tar, signal).catch(unreadable));
    return (await this.#noted(name))?.digest;
  }

  /** The root has a temporary name until it is complete and read-only. So every root that is named by a digest is complete. */
  async #unpack(name: string, archives: readonly string[], path: string, signal: AbortSignal): Promise<void> {
    if (await isWhole(path)) return;
    await this.#free(path, signal);
    const [first, ...more] = archives;
    this.#options.onProgress(
      `image ${name}: unpacking ${more.length === 0 ? first : `${archives.length} layers`}`,
    );
    const half = `${path}.new`;
    await this.#free(half, signal);
    const room = await roomFor(name, this.#pool);
    await this.#finish(name, path, signal, () => unpack(name, archives, half, room, signal));
  }

  /** Gives what `make` makes its name, with the accounts that it tells, or takes it away. */
  async #finish(
    name: string,
    path: string,
    signal: AbortSignal,
    make: () => Promise<AccountFiles>,
  ): Promise<void> {
    const half = `${path}.new`;
    try {
      const accounts = await make();
      await run(["btrfs", "property", "set", half, "ro", "true"], { signal });
      await mkdir(dirname(accountsOf(path)), { recursive: true, mode: 0o700 });
      await writeAtomic(accountsOf(path), JSON.stringify(accounts));
      await rename(half, path);
    } catch (error) {
      const cleanUp = deadline(this.#options.clock, REMOVAL, () => new ImageError(`${half} stays`));
      await this.#free(half, cleanUp.signal).catch((failure) =>
        this.#options.onProgress(`image ${name}: ${half} cannot be removed: ${messageOf(failure)}`),
      );
      cleanUp.cancel();
      throw error;
    }
  }

  async #freeHalves(signal: AbortSignal): Promise<void> {
    for (const name of await readdir(this.#folder).catch(() => []))
      if (name.endsWith(".new")) await this.#free(join(this.#folder, name), signal);
  }

  async #free(path: string, signal: AbortSignal): Promise<void> {
    await rm(accountsOf(path), { force: true });
    await freeSubvolume(path, this.#pool.groups, signal);
  }

  async #digest(tar: string, signal: AbortSignal): Promise<string> {
    const key = `${tar} ${versionOf(await statOf(tar))}`;
    const known = this.#digests.get(key);
    if (known !== undefined) return known;
    const digest = await sha256sum(tar, signal);
    this.#digests.set(key, digest);
    return digest;
  }
}

/** Digest of a file. A program of its own can be killed, and keeps the event loop free. */
async function sha256sum(path: string, signal: AbortSignal): Promise<string> {
  const said = await run(["sha256sum", "-z", path], { signal, diesWithUs: true, memory: MEMORY });
  return said.slice(0, 64);
}

/** Stored outside of the images, so that making a sliver reads no file of an image. */
function accountsOf(path: string): string {
  return join(dirname(path), "../accounts", basename(path));
}

async function isWhole(path: string): Promise<boolean> {
  return (await exists(path)) && (await exists(accountsOf(path)));
}

function unreadable(error: unknown): undefined {
  if (!(error instanceof ImageError)) throw error;
}
