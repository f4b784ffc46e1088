import { mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";

import { writeAtomic } from "../../edge/files.ts";
import { run } from "../../edge/run.ts";
import type { PoolTools } from "../quota-groups.ts";
import type { AccountFiles } from "./jail.ts";
import { exists, type Pool } from "./pool.ts";
import { clear, freeSubvolume } from "./subvolumes.ts";

/** End of a root's name until it is complete. */
const HALF = ".new";

/**
 * The read-only roots of images in the pool, by digest. A root with a digest for its name is complete: it is made under another name, and
 * renamed last.
 */
export class ImageRoots {
  readonly #pool: Pool;
  readonly #options: PoolTools;

  constructor(pool: Pool, options: PoolTools) {
    this.#pool = pool;
    this.#options = options;
  }

  path(digest: string): string {
    return join(this.#folder, digest);
  }

  /** Digests of all roots. */
  async list(): Promise<string[]> {
    const names = await readdir(this.#folder).catch(() => []);
    return names.filter((name) => /^[0-9a-f]{64}$/.test(name));
  }

  /** The accounts of a root, as they were when it was made. */
  async accounts(path: string): Promise<AccountFiles> {
    return JSON.parse(await readFile(this.#accounts(path), "utf8")) as AccountFiles;
  }

  /** Both the root and what is stored about its accounts are there. */
  async isWhole(digest: string): Promise<boolean> {
    const path = this.path(digest);
    return (await exists(path)) && (await exists(this.#accounts(path)));
  }

  /** Makes the root of image `name`: `fill` makes a subvolume at the path that it is given, and tells the accounts in it. */
  async make(
    name: string,
    digest: string,
    fill: (half: string) => Promise<AccountFiles>,
    signal: AbortSignal,
  ): Promise<void> {
    const path = this.path(digest);
    const half = `${path}${HALF}`;
    for (const one of [path, half]) await this.#free(one, signal);
    try {
      const accounts = await fill(half);
      await run(["btrfs", "property", "set", half, "ro", "true"], { signal });
      await mkdir(join(this.#pool.folder, "accounts"), { recursive: true, mode: 0o700 });
      await writeAtomic(this.#accounts(path), JSON.stringify(accounts));
      await rename(half, path);
    } catch (error) {
      await clear(name, half, this.#options, (limit) => this.#free(half, limit));
      throw error;
    }
  }

  /** A root that is not there is no error. */
  async remove(digest: string, signal: AbortSignal): Promise<void> {
    await this.#free(this.path(digest), signal);
  }

  /** Removes what was left incomplete. */
  async tidy(signal: AbortSignal): Promise<void> {
    for (const name of await readdir(this.#folder).catch(() => []))
      if (name.endsWith(HALF)) await this.#free(this.path(name), signal);
  }

  /** For a machine that no longer has slivers. */
  async removeAll(signal: AbortSignal): Promise<void> {
    await this.tidy(signal);
    for (const digest of await this.list()) await this.remove(digest, signal);
    for (const name of ["images", "accounts"])
      await rm(join(this.#pool.folder, name), { recursive: true, force: true });
  }

  get #folder(): string {
    return join(this.#pool.folder, "images");
  }

  /** Stored outside of the roots, so that making a sliver reads no file of an image. */
  #accounts(path: string): string {
    return join(this.#pool.folder, "accounts", basename(path));
  }

  /** The accounts first: without them a root counts as incomplete and is made again. */
  async #free(path: string, signal: AbortSignal): Promise<void> {
    await rm(this.#accounts(path), { force: true });
    await freeSubvolume(path, this.#pool.groups, signal);
  }
}
