import { chown, mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { Gate, jsonOrUndefined, messageOf } from "@nodeyard/runtime";
import type { CacheReport, SliverVolume } from "@nodeyard/sliver-protocol";
import { CacheError } from "../../../errors.ts";
import type { CacheChange } from "../../contract.ts";
import { HALF, writeAtomic } from "../../edge/files.ts";
import { run } from "../../edge/run.ts";
import {
  type Cache,
  cacheId,
  cacheSchema,
  committed,
  type Ended,
  overflow,
  refusalOf,
  reportOf,
  type Start,
  startOf,
  type Volume,
} from "../caches.ts";
import type { PoolTools } from "../quota-groups.ts";
import { exists, type Pool } from "./pool.ts";
import { readData } from "./subvolume-list.ts";
import { deleteSubvolume, Subvolumes } from "./subvolumes.ts";

/**
 * The caches of slivers. Each is a subvolume that nobody writes, and a note that names it: a version counts from the moment when the
 * note does. A sliver has a copy, which may have `size` in all: what it shares with its cache counts, too, because the cache may go
 * first. Files in them are a stranger's, and nothing here opens one.
 */
export class CacheStore {
  readonly #pool: Pool;
  readonly #copies: Subvolumes;
  readonly #options: PoolTools;
  /** Part of the pool for all caches together. */
  readonly #part: number;
  readonly #caches = new Map<string, Cache>();
  /** A version must not go between its choice and its copy. */
  readonly #turn = new Gate(1);

  constructor(pool: Pool, part: number, options: PoolTools) {
    this.#pool = pool;
    this.#copies = new Subvolumes(pool, "copies", "all");
    this.#part = part;
    this.#options = options;
  }

  list(): readonly CacheReport[] {
    return [...this.#caches].map(([id, cache]) => reportOf(id, cache));
  }

  /** The folder of a copy on the machine. */
  path(mark: string, { name }: Pick<SliverVolume, "name">): string {
    return this.#copies.path(`${mark}.${name}`);
  }

  /** Reads what is there, and removes what a crash left: versions without a note, and copies of slivers that are not in `marks`. */
  async prepare(marks: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    for (const folder of [this.#folder, join(this.#pool.folder, "copies")])
      await mkdir(folder, { recursive: true });
    this.#caches.clear();
    const names = await readdir(this.#folder);
    for (const name of names) if (name.endsWith(HALF)) await rm(join(this.#folder, name), { force: true });
    for (const file of names.filter((name) => /^[0-9a-f]{32}\.json$/.test(name))) {
      const text = await readFile(join(this.#folder, file), "utf8");
      // Of a damaged note there is no cache.
      const cache = cacheSchema.safeParse(jsonOrUndefined(text)).data;
      if (cache !== undefined && (await exists(join(this.#folder, cache.version))))
        this.#caches.set(file.slice(0, 32), cache);
      else await rm(join(this.#folder, file), { force: true });
    }
    const kept = new Set([...this.#caches.values()].map(({ version }) => version));
    const isLeft = (name: string) => marks.has(name.slice(name.indexOf(".") + 1));
    for (const name of names)
      if (!name.includes(".json") && !kept.has(name) && !isLeft(name))
        await deleteSubvolume(join(this.#folder, name), this.#pool.groups, signal);
    for (const name of await this.#copies.list())
      if (!marks.has(name.slice(0, name.lastIndexOf(".")))) await this.#copies.remove(name, signal);
    await this.#makeRoom(signal);
  }

  /** Makes the copies of a new sliver. A cache that cannot be copied is none: the sliver begins with an empty one. */
  async copy(
    mark: string,
    volumes: readonly SliverVolume[],
    owner: number,
    signal: AbortSignal,
  ): Promise<Volume[]> {
    const all: Volume[] = [];
    for (const volume of volumes)
      all.push({ ...volume, ...(await this.#turn.run(() => this.#copy(mark, volume, owner, signal))) });
    return all;
  }

  async #copy(mark: string, volume: SliverVolume, owner: number, signal: AbortSignal): Promise<Start> {
    const id = cacheId(volume);
    const own = `${mark}.${volume.name}`;
    const now = this.#now();
    const cache = this.#caches.get(id);
    let start = startOf(volume, cache, now);
    await this.#copies.remove(own, signal);
    if (cache !== undefined && start.base !== undefined) {
      try {
        await this.#copies.make(own, join(this.#folder, start.base), volume.size, signal);
        const next = { ...cache, used: now, hits: cache.hits + 1 };
        await this.#note(id, next, false);
        return start;
      } catch (error) {
        signal.throwIfAborted();
        await this.#copies.remove(own, signal);
        start = { began: now, why: messageOf(error) };
      }
    }
    await this.#copies.make(own, undefined, volume.size, signal);
    await chown(this.#copies.path(own), owner, owner);
    return start;
  }

  /**
   * Makes the copies of an ended sliver the caches, where they may become that, and removes them. Called again after a crash, it goes on
   * from there. A cache that cannot be kept holds up no sliver's end.
   */
  async leave(
    mark: string,
    by: string,
    volumes: readonly Volume[],
    ended: Omit<Ended, keyof SliverVolume>,
    signal: AbortSignal,
  ): Promise<void> {
    for (const volume of volumes) {
      await this.#turn
        .run(() => this.#commit(mark, by, volume, ended, signal))
        .catch((error) => {
          signal.throwIfAborted();
          this.#options.onProgress(`cache ${volume.name} of ${by} is not kept: ${messageOf(error)}`);
        });
      await this.#copies.remove(`${mark}.${volume.name}`, signal);
    }
  }

  async #commit(
    mark: string,
    by: string,
    { began, base, ...volume }: Volume,
    ended: Omit<Ended, keyof SliverVolume>,
    signal: AbortSignal,
  ): Promise<void> {
    const id = cacheId(volume);
    const version = `${id}.${mark}`;
    const before = this.#caches.get(id);
    if (before?.version === version || began === undefined || volume.commit !== "at-end") return;
    const path = join(this.#folder, version);
    // The kernel writes what waits for the disk before it takes a snapshot, so the version is whole when its note names it.
    if (!(await exists(path)))
      await run(["btrfs", "subvolume", "snapshot", "-r", this.path(mark, volume), path], { signal });
    const bytes = await this.#bytes(path, signal);
    const room = await this.#room();
    const refusal =
      refusalOf({ ...volume, ...ended }, bytes) ??
      (bytes > room ? `it has ${bytes} bytes, and all caches may have ${room}` : undefined);
    if (refusal !== undefined) {
      await deleteSubvolume(path, this.#pool.groups, signal);
      this.#options.onProgress(`cache ${volume.name} of ${by} is not kept: ${refusal}`);
      return;
    }
    await this.#note(id, committed(before, volume, { base, began }, { version, bytes, by }, this.#now()));
    if (before !== undefined)
      await deleteSubvolume(join(this.#folder, before.version), this.#pool.groups, signal);
    await this.#makeRoom(signal);
  }

  /** Throws CacheError. */
  change(id: string, change: CacheChange, signal: AbortSignal): Promise<void> {
    return this.#turn.run(async () => {
      const cache = this.#caches.get(id);
      if (cache === undefined)
        throw new CacheError(`there is no cache ${id}; "nodeyard caches list" names them`);
      if (change === "delete") await this.#remove(id, cache, signal);
      else await this.#note(id, { ...cache, pinned: change === "pin" });
      await this.#makeRoom(signal);
    });
  }

  /** For a machine that no longer has slivers. */
  async removeAll(signal: AbortSignal): Promise<void> {
    this.#caches.clear();
    for (const folder of [this.#folder, join(this.#pool.folder, "copies")]) {
      for (const name of await readdir(folder).catch(() => []))
        await deleteSubvolume(join(folder, name), this.#pool.groups, signal);
      await rm(folder, { recursive: true, force: true });
    }
  }

  async #makeRoom(signal: AbortSignal): Promise<void> {
    for (const id of overflow(this.#caches, await this.#room())) {
      this.#options.onProgress(`cache ${id} goes: others need its room`);
      await this.#remove(id, this.#caches.get(id)!, signal);
    }
  }

  /** The note first: a version without one is removed by the next start. */
  async #remove(id: string, { version }: Cache, signal: AbortSignal): Promise<void> {
    this.#caches.delete(id);
    await rm(this.#file(id), { force: true });
    await deleteSubvolume(join(this.#folder, version), this.#pool.groups, signal);
  }

  /** `durable`: false for what may be forgotten, as when it was used last. */
  async #note(id: string, cache: Cache, durable = true): Promise<void> {
    await writeAtomic(this.#file(id), JSON.stringify(cache), { durable });
    this.#caches.set(id, cache);
  }

  async #bytes(path: string, signal: AbortSignal): Promise<number> {
    const id = Number(await run(["btrfs", "inspect-internal", "rootid", path], { signal }));
    const all = readData(await run(["btrfs", "qgroup", "show", "--raw", "-f", path], { signal }));
    const bytes = all.get(id)?.all;
    if (bytes === undefined) throw new CacheError(`btrfs does not say what ${path} takes`);
    return bytes;
  }

  async #room(): Promise<number> {
    return Math.floor((await this.#pool.capacity()) * this.#part);
  }

  #file(id: string): string {
    return join(this.#folder, `${id}.json`);
  }

  get #folder(): string {
    return join(this.#pool.folder, "caches");
  }

  /** Seconds since the Unix epoch. */
  #now(): number {
    return Math.floor(this.#options.clock.now() / 1000);
  }
}
