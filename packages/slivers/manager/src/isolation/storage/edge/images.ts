import { randomBytes } from "node:crypto";
import { basename, join } from "node:path";
import { abortable, deadline, NodeyardError } from "@nodeyard/runtime";
import type { ImageTrialRules, MadeOf } from "../../../core/image-trials.ts";
import { ImageError, PoolFullError } from "../../../errors.ts";
import { run } from "../../edge/run.ts";
import type { PoolTools } from "../quota-groups.ts";
import {
  type ArchiveSource,
  Archives,
  IMAGE_DIGEST,
  IMAGE_NAME,
  type ImageSource,
  type LayeredSource,
  sha256sum,
  unpack,
} from "./archives.ts";
import { ImageNames, type Noted } from "./image-names.ts";
import { ImageRoots } from "./image-roots.ts";
import { tidyInJail } from "./jail.ts";
import { readLayout } from "./layout.ts";
import { Layouts, roomFor } from "./layouts.ts";
import type { Pool } from "./pool.ts";
import { imagesInUse } from "./subvolume-list.ts";
import { TriedNames } from "./tried-names.ts";

/** Options of `Images`. */
export interface ImageOptions extends PoolTools {
  readonly sources: Readonly<Record<string, ImageSource>>;
  /** Folder for the archives that are built here. */
  readonly cache: string;
  /** Absent: a new version of an image serves at once. */
  readonly trial?: ImageTrialRules | undefined;
}

/** Milliseconds to make one image, with building its archive. */
const LIMIT = 1_200_000;

/** Roots by digest. Each is unpacked once per machine, never changed, and removed when no configured name and no sliver uses it. */
export class Images {
  readonly #pool: Pool;
  readonly #options: ImageOptions;
  readonly #archives: Archives;
  /** Of the images that are there. */
  readonly roots: ImageRoots;
  /** Names of the configuration. */
  readonly names: TriedNames;
  /** Of images that were made of slivers. */
  readonly #snapshots: ImageNames;
  /** Images that are being made, by name, and by digest where they are made of a sliver. Several callers wait for one. */
  readonly #making = new Map<string, Promise<string>>();
  readonly #layouts: Layouts;
  /** By digest, because several names may have the same archive. */
  readonly #unpacking = new Map<string, Promise<void>>();

  constructor(pool: Pool, options: ImageOptions) {
    this.#pool = pool;
    this.#options = options;
    this.#archives = new Archives(options);
    this.roots = new ImageRoots(pool, options);
    this.names = new TriedNames(join(pool.folder, "names"), options.trial, options.clock);
    this.#snapshots = new ImageNames(join(pool.folder, "snapshots"));
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

  /**
   * Whether a new sliver may still be made of this, as far as that is known without reading an image: a registry's tag or a folder that has
   * changed is noticed when the next sliver is made of it.
   */
  async serves({ name, digest }: Omit<MadeOf, "tried">, signal: AbortSignal): Promise<boolean> {
    const { trials } = this.names;
    if (trials?.of(name) !== undefined) return trials.kept(name).includes(digest);
    const [, wanted] = IMAGE_DIGEST.exec(name) ?? [];
    if (wanted !== undefined) return wanted === digest;
    const source = Object.hasOwn(this.#options.sources, name) ? this.#options.sources[name] : undefined;
    if (source !== undefined) return (await this.#known(name, source, signal)) === digest;
    return IMAGE_NAME.test(name) && (await this.#snapshots.read(name))?.digest === digest;
  }

  /** The root for a sliver. Throws as `ensure`. */
  async forSliver(
    name: string,
    incarnation: number,
    signal: AbortSignal,
  ): Promise<{ readonly path: string; readonly made: MadeOf }> {
    const path = await this.ensure(name, signal);
    const made = this.names.trials?.choose(name, incarnation);
    if (made === undefined) return { path, made: { name, digest: basename(path), tried: false } };
    return { path: this.roots.path(made.digest), made };
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
    const making = (async () => {
      const copy = async (half: string) => {
        await run(["btrfs", "subvolume", "snapshot", root, half], { signal });
        return await tidyInJail(half, user, signal);
      };
      await this.roots.make(name, id, copy, signal);
      await this.#snapshots.write(name, { digest: id, from: "" });
      return this.roots.path(id);
    })();
    // So that nothing half made is taken for what a crash left.
    this.#making.set(id, making);
    await making.finally(() => this.#making.delete(id));
    await this.retire(signal);
  }

  /** Takes the name from an image that was made of a sliver. Throws ImageError. */
  async forget(name: string, signal: AbortSignal): Promise<void> {
    const all = await this.#snapshots.list();
    if (!all.includes(name))
      throw new ImageError(`there is no snapshot ${name}; there is ${all.join(", ") || "none"}`);
    await this.#snapshots.remove(name);
    await this.retire(signal);
  }

  /** Removes what a crash left incomplete. No image may be in the making during this call. */
  async tidy(signal: AbortSignal): Promise<void> {
    await this.#archives.tidy();
    await this.roots.tidy(signal);
    // So that a report has them before the next sliver is made.
    for (const name of await this.names.list()) await this.names.read(name);
  }

  /**
   * Removes images that no configured name refers to and no sliver is a copy of, and incomplete ones whose removal failed before. Must not
   * run while a sliver is being made: until the sliver's subvolume exists, nothing shows that its image is in use.
   */
  async retire(signal: AbortSignal): Promise<void> {
    if (this.#making.size > 0) return;
    await this.roots.tidy(signal);
    const keep = new Set<string>();
    for (const name of await this.names.list()) {
      if (!Object.hasOwn(this.#options.sources, name)) await this.names.remove(name);
      else for (const version of await this.names.kept(name)) keep.add(version);
    }
    for (const name of await this.#snapshots.list())
      keep.add((await this.#snapshots.read(name))?.digest ?? "");
    const rest = (await this.roots.list()).filter((digest) => !keep.has(digest));
    if (rest.length === 0) return;
    const used = imagesInUse(await this.#pool.subvolumes(signal));
    for (const digest of rest) {
      if (used.has(digest)) continue;
      this.#options.onProgress(`image sha256:${digest}: unused, deleting it`);
      await this.roots.remove(digest, signal);
    }
  }

  /** Removes all images from a machine without slivers. */
  async remove(signal: AbortSignal): Promise<void> {
    await this.#archives.tidy();
    await this.roots.removeAll(signal);
    await this.names.removeAll();
    await this.#snapshots.removeAll();
  }

  /** Starts the work that `ensure` waits for, with a time limit of its own. */
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

  /** Finds or makes the image that the name stands for now. Resolves to its folder. */
  async #make(name: string, signal: AbortSignal): Promise<string> {
    const [, wanted] = IMAGE_DIGEST.exec(name) ?? [];
    if (wanted !== undefined) return await this.#find(wanted, signal);
    const source = Object.hasOwn(this.#options.sources, name) ? this.#options.sources[name] : undefined;
    if (source === undefined) {
      const snapshot = IMAGE_NAME.test(name) ? await this.#snapshots.read(name) : undefined;
      if (snapshot !== undefined) return await this.#find(snapshot.digest, signal);
      const all = [...Object.keys(this.#options.sources), ...(await this.#snapshots.list())];
      const names = all.join(", ") || "none";
      throw new ImageError(`there is no image ${JSON.stringify(name)}; there is ${names}`);
    }
    const former = await this.#former(name);
    try {
      const made =
        "oci" in source || "registry" in source
          ? await this.#ofLayout(name, source, signal)
          : { digest: await this.#ofArchive(name, source, signal), from: "" };
      await this.names.note(name, made, former);
      return this.roots.path(made.digest);
    } catch (error) {
      // Where versions are tried, a source that is gone keeps no sliver from the proven one.
      const proven = this.names.trials?.of(name)?.proven;
      if (proven === undefined || !(error instanceof NodeyardError) || signal.aborted) throw error;
      this.#options.onProgress(`image ${name}: the last one is used: ${error.message}`);
      return this.roots.path(proven);
    }
  }

  /** The version that a name stood for last, if it is there. */
  async #former(name: string): Promise<string | undefined> {
    const noted = await this.names.read(name);
    return noted !== undefined && (await this.roots.isWhole(noted.digest)) ? noted.digest : undefined;
  }

  /** The digest is that of the archive; equal archives have one root. */
  async #ofArchive(name: string, source: ArchiveSource, signal: AbortSignal): Promise<string> {
    const tar = await this.#archives.ensure(source, signal);
    const digest = await this.#archives.digest(tar, signal);
    if ("tar" in source && source.sha256 !== undefined && source.sha256 !== digest)
      throw new ImageError(
        `image ${name}: ${tar} has sha256 ${digest}, and should have ${source.sha256}; replace the file or the digest`,
      );
    await this.#once(name, digest, [tar], signal);
    return digest;
  }

  /** The digest is that of its manifest. */
  async #ofLayout(name: string, source: LayeredSource, signal: AbortSignal): Promise<Noted> {
    const noted = await this.names.read(name);
    const known = noted !== undefined && (await this.#isKnown(name, noted.digest)) ? noted : undefined;
    const take = async (folder: string) => {
      const { digest, layers } = await readLayout(folder, "oci" in source ? source.tag : undefined);
      if (await this.#isKnown(name, digest)) return digest;
      for (const { file, sha256 } of layers)
        if ((await sha256sum(file, signal)) !== sha256)
          throw new ImageError(`image ${name}: layer ${file} is damaged: it has another sha256`);
      const files = layers.map(({ file }) => file);
      await this.#once(name, digest, files, signal);
      return digest;
    };
    return await this.#layouts.resolve(name, source, known, take, signal);
  }

  /** One at a time for equal digests. */
  async #once(name: string, digest: string, archives: readonly string[], signal: AbortSignal): Promise<void> {
    if (this.names.trials?.isRejected(name, digest)) return;
    const former = await this.#former(name);
    const unpacking =
      this.#unpacking.get(digest) ??
      this.#unpack(name, archives, digest, signal).finally(() => this.#unpacking.delete(digest));
    this.#unpacking.set(digest, unpacking);
    await unpacking.catch((error) => {
      const isBad = error instanceof ImageError;
      if (!isBad || !this.names.refuse(name, digest, former, error.message)) throw error;
    });
  }

  /** Whether nothing is to be made of a version: it is there, or was rolled back. */
  async #isKnown(name: string, digest: string): Promise<boolean> {
    return this.names.trials?.isRejected(name, digest) === true || (await this.roots.isWhole(digest));
  }

  /** Finds an image by its digest: an unpacked one, or the archive of a configured name. No archive is built for this. */
  async #find(wanted: string, signal: AbortSignal): Promise<string> {
    if (await this.roots.isWhole(wanted)) return this.roots.path(wanted);
    const there: string[] = [];
    for (const [name, source] of Object.entries(this.#options.sources)) {
      const digest = await this.#known(name, source, signal);
      if (digest === wanted) {
        await this.ensure(name, signal);
        // Not when that version was rolled back.
        if (await this.roots.isWhole(wanted)) return this.roots.path(wanted);
      }
      there.push(digest === undefined ? name : `${name} (sha256:${digest})`);
    }
    throw new ImageError(`there is no image sha256:${wanted}; there is ${there.join(", ") || "none"}`);
  }

  /** Digest of a name's archive. Undefined when the archive has not been built yet or cannot be read. */
  async #known(name: string, source: ImageSource, signal: AbortSignal): Promise<string | undefined> {
    if ("tar" in source)
      return source.sha256 ?? (await this.#archives.digest(source.tar, signal).catch(unreadable));
    return (await this.names.read(name))?.digest;
  }

  /** Unpacks the layers, the lowest first, unless the root is there. No more is unpacked than the pool has room for. */
  async #unpack(
    name: string,
    archives: readonly string[],
    digest: string,
    signal: AbortSignal,
  ): Promise<void> {
    if (await this.roots.isWhole(digest)) return;
    const [first, ...more] = archives;
    this.#options.onProgress(
      `image ${name}: unpacking ${more.length === 0 ? first : `${archives.length} layers`}`,
    );
    const fill = async (half: string) =>
      unpack(name, archives, half, await roomFor(name, this.#pool), signal);
    await this.roots.make(name, digest, fill, signal);
  }
}

/** For questions that are answered as well as can be: an archive that is missing has no digest. */
function unreadable(error: unknown): undefined {
  if (!(error instanceof ImageError)) throw error;
}
