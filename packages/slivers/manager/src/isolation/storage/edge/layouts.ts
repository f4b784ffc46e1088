import { join } from "node:path";
import { messageOf } from "@nodeyard/runtime";
import { CommandError, ImageError, PoolFullError } from "../../../errors.ts";
import { run } from "../../edge/run.ts";
import type { PoolTools } from "../quota-groups.ts";
import { type LayeredSource, statOf, versionOf } from "./archives.ts";
import type { Noted } from "./image-names.ts";
import { inJail } from "./jail.ts";
import type { Pool } from "./pool.ts";
import { fetchLayout, lookUp, type RegistryImage } from "./registry.ts";
import { clear, deleteSubvolume, freeSubvolume } from "./subvolumes.ts";

/** Makes the image of a layout's folder and resolves to its digest. */
export type Take = (folder: string) => Promise<string>;

/** Milliseconds until a registry is asked again for the digest of a tag. */
const LOOK = 300_000;

/** Bytes of the pool that images must leave free: a full btrfs needs space even to delete files. */
const SPARE = 67_108_864;
/** Unpacks an archive of a layout into a folder, only the files that are read. */
const UNPACK = "tar -x --no-same-owner -f /archives/100 -C /image; find /image ! -type f ! -type d -delete";

/** Bytes that an image may take. Throws PoolFullError. */
export async function roomFor(name: string, pool: Pool): Promise<number> {
  const { size, used } = await pool.space();
  const room = size - used - Math.max(size / 20, SPARE);
  if (room > 0) return Math.floor(room);
  throw new PoolFullError(`image ${name} does not fit: the pool has ${size - used} bytes left`);
}

/**
 * OCI layouts of all sources. Layouts that must be unpacked or fetched are in the pool while they are needed, with a limit of their size.
 */
export class Layouts {
  readonly #pool: Pool;
  readonly #options: PoolTools;
  /** Monotonic time at which the registry of each name was last asked. */
  readonly #looked = new Map<string, number>();

  constructor(pool: Pool, options: PoolTools) {
    this.#pool = pool;
    this.#options = options;
  }

  /**
   * The current image of the source. `noted`: the last result, if its image is complete; an unchanged source is neither unpacked nor
   * fetched again. Throws ImageError, CommandError.
   */
  async resolve(
    name: string,
    source: LayeredSource,
    noted: Noted | undefined,
    take: Take,
    signal: AbortSignal,
  ): Promise<Noted> {
    if ("registry" in source) {
      const known = noted?.from.startsWith(`${source.registry} `) === true ? noted : undefined;
      return await this.#fetched(name, source, known, take, signal);
    }
    const info = await statOf(source.oci);
    if (info.isDirectory()) return { digest: await take(source.oci), from: "" };
    const from = `${source.oci} ${source.tag ?? ""} ${versionOf(info)}`;
    if (noted?.from === from) return noted;
    return await this.#within(name, signal, async (scratch) => {
      await inJail(UNPACK, [source.oci], scratch, signal).catch((cause) => {
        if (!(cause instanceof CommandError)) throw cause;
        throw new ImageError(`${source.oci} is no OCI archive: ${cause.message}`, { cause });
      });
      return { digest: await take(scratch), from };
    });
  }

  async #fetched(
    name: string,
    source: RegistryImage,
    known: Noted | undefined,
    take: Take,
    signal: AbortSignal,
  ): Promise<Noted> {
    const { clock, onProgress } = this.#options;
    const now = clock.monotonic();
    const looked = this.#looked.get(name);
    if (known !== undefined && looked !== undefined && now - looked < LOOK) return known;
    this.#looked.set(name, now);
    return await this.#within(name, signal, async (scratch) => {
      const digest = await lookUp(source, scratch, signal);
      const from = `${source.registry} ${digest}`;
      if (known?.from === from) return known;
      onProgress(`image ${name}: fetching ${source.registry}`);
      await fetchLayout(source, digest, scratch, signal);
      return { digest: await take(join(scratch, "layout")), from };
    }).catch((error) => {
      // When the registry does not answer, slivers use the image that is here.
      if (!(error instanceof CommandError) || known === undefined) throw error;
      onProgress(`image ${name}: the last one is used: ${messageOf(error)}`);
      return known;
    });
  }

  async #within<T>(name: string, signal: AbortSignal, work: (scratch: string) => Promise<T>): Promise<T> {
    // The name ends in `.new`: the next start of the daemon removes such folders after a crash.
    const scratch = join(this.#pool.folder, "images", `${name}.layout.new`);
    await freeSubvolume(scratch, this.#pool.groups, signal);
    const room = await roomFor(name, this.#pool);
    try {
      await run(["btrfs", "subvolume", "create", scratch], { signal });
      await run(["btrfs", "qgroup", "limit", String(room), scratch], { signal });
      return await work(scratch);
    } finally {
      await clear(name, scratch, this.#options, (limit) =>
        deleteSubvolume(scratch, this.#pool.groups, limit),
      );
    }
  }
}
