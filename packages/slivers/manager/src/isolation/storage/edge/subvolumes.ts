import { readdir, readFile, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { deadline, messageOf } from "@nodeyard/runtime";
import { ImageError } from "../../../errors.ts";
import { run } from "../../edge/run.ts";
import type { PoolTools, QuotaGroups } from "../quota-groups.ts";
import type { Pool } from "./pool.ts";
import { readData } from "./subvolume-list.ts";

/** Inode number of every subvolume's root. A folder with another number is the rest of a creation that a crash interrupted. */
const ROOT = 256;

/**
 * A missing subvolume is no error, nor one that goes meanwhile, by a program that a killed manager had started. btrfs frees the space and the
 * quota group in the background. Resolves to the number of the removed subvolume.
 */
export async function deleteSubvolume(
  path: string,
  groups: QuotaGroups,
  signal: AbortSignal,
): Promise<number | undefined> {
  const look = () => stat(path).catch(() => undefined);
  const info = await look();
  if (info === undefined) return undefined;
  if (info.ino !== ROOT) {
    await rm(path, { recursive: true, force: true });
    return undefined;
  }
  let id: number | undefined;
  try {
    id = Number(await run(["btrfs", "inspect-internal", "rootid", path], { signal }));
    await groups.owe(id);
    await run(["btrfs", "subvolume", "delete", path], { signal });
  } catch (error) {
    if (signal.aborted || (await look()) !== undefined) throw error;
  } finally {
    // An aborted deletion may still have taken effect.
    if (id !== undefined && (await look()) === undefined) groups.begin(id);
  }
  return id;
}

/** Milliseconds to remove what work that failed has left. */
const REMOVAL = 60_000;

/** Removes what image `name` needed no more, also after a failure or an abort; that it stays is told, and is no failure. */
export async function clear(
  name: string,
  path: string,
  { clock, onProgress }: PoolTools,
  remove: (signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  using limit = deadline(clock, REMOVAL, () => new ImageError(`${path} stays`));
  await remove(limit.signal).catch((failure) =>
    onProgress(`image ${name}: ${path} cannot be removed: ${messageOf(failure)}`),
  );
}

/** Deletes a subvolume and resolves when its space is free again. For images, which are large: the next one may need the space. */
export async function freeSubvolume(path: string, groups: QuotaGroups, signal: AbortSignal): Promise<void> {
  const id = await deleteSubvolume(path, groups, signal);
  if (id === undefined) return;
  await run(["btrfs", "filesystem", "sync", dirname(path)], { signal });
  await run(["btrfs", "subvolume", "sync", dirname(path), String(id)], { signal });
}

/**
 * Subvolumes that slivers write to, each with a limit: their roots, of which what an image shares does not count ("own"), and their copies of
 * caches ("all").
 */
export class Subvolumes {
  readonly #pool: Pool;
  readonly #folder: string;
  readonly #counted: "own" | "all";
  /** KiB, by the sliver's mark. */
  readonly #limits = new Map<string, number>();
  /** Numbers of subvolumes by mark, which never change. */
  readonly #ids = new Map<string, number>();

  constructor(pool: Pool, folder = "slivers", counted: "own" | "all" = "own") {
    this.#pool = pool;
    this.#folder = join(pool.folder, folder);
    this.#counted = counted;
  }

  path(mark: string): string {
    return join(this.#folder, mark);
  }

  async list(): Promise<string[]> {
    return readdir(this.#folder).catch(() => []);
  }

  /** Makes a copy of an image, or an empty subvolume, and limits it to `kib` before anything is written to it. */
  async make(mark: string, image: string | undefined, kib: number, signal: AbortSignal): Promise<void> {
    const path = this.path(mark);
    this.#forget(mark);
    await run(
      image === undefined
        ? ["btrfs", "subvolume", "create", path]
        : ["btrfs", "subvolume", "snapshot", image, path],
      { signal },
    );
    await this.limit(mark, kib, signal);
  }

  /** Limits its data to `kib`; 0: no limit. A limit that this process has already set is not set again. */
  async limit(mark: string, kib: number, signal: AbortSignal): Promise<void> {
    if (this.#limits.get(mark) === kib) return;
    this.#limits.delete(mark);
    const size = kib === 0 ? "none" : String(kib * 1024);
    const own = this.#counted === "own" ? ["-e"] : [];
    await run(["btrfs", "qgroup", "limit", ...own, size, this.path(mark)], { signal });
    this.#limits.set(mark, kib);
  }

  /** Bytes of own data (without its image's) by the sliver's mark, as of btrfs's last commit, up to 30 s ago. */
  async used(signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
    const marks = await this.list();
    // A program for all that the kernel's files do not tell: each start of one costs the daemon more than reading many files.
    if (marks.some((mark) => !this.#ids.has(mark)))
      for (const { id, path } of await this.#pool.subvolumes(signal)) {
        const mark = /(?:^|\/)slivers\/([^/]+)$/.exec(path)?.[1];
        if (mark !== undefined) this.#ids.set(mark, id);
      }
    const folder = await this.#pool.quotaFolder();
    const own =
      folder === undefined
        ? readData(await run(["btrfs", "qgroup", "show", "--raw", this.#pool.folder], { signal }))
        : undefined;
    const all = marks.map(async (mark) => {
      const id = this.#ids.get(mark);
      if (id === undefined) return [];
      const file = `${folder}/0_${id}/exclusive`;
      const bytes =
        own === undefined ? Number(await readFile(file, "utf8").catch(() => Number.NaN)) : own.get(id)?.own;
      return bytes === undefined || Number.isNaN(bytes) ? [] : [[mark, bytes] as const];
    });
    return new Map((await Promise.all(all)).flat());
  }

  #forget(mark: string): void {
    this.#limits.delete(mark);
    this.#ids.delete(mark);
  }

  /** A missing subvolume is no error. */
  async remove(mark: string, signal: AbortSignal): Promise<void> {
    this.#forget(mark);
    await deleteSubvolume(this.path(mark), this.#pool.groups, signal);
  }
}
