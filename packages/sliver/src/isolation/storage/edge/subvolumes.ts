import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../../edge/run.ts";
import { deleteSubvolume } from "./delete-subvolume.ts";
import type { Pool } from "./pool.ts";

/** The roots of slivers: one subvolume each, with a limit on what it has for itself alone. */
export class Subvolumes {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  path(mark: string): string {
    return join(this.#pool.folder, "slivers", mark);
  }

  async list(): Promise<string[]> {
    return readdir(join(this.#pool.folder, "slivers")).catch(() => []);
  }

  /** A copy of an image, or an empty one. */
  async make(mark: string, image: string | undefined, signal: AbortSignal): Promise<void> {
    const path = this.path(mark);
    await run(
      image === undefined
        ? ["btrfs", "subvolume", "create", path]
        : ["btrfs", "subvolume", "snapshot", image, path],
      { signal },
    );
  }

  /** `kib` of data of its own; what it shares with its image is not counted. */
  async limit(mark: string, kib: number, signal: AbortSignal): Promise<void> {
    const size = kib === 0 ? "none" : String(kib * 1024);
    await run(["btrfs", "qgroup", "limit", "-e", size, this.path(mark)], { signal });
  }

  /** One that is not there is no error. */
  async remove(mark: string, signal: AbortSignal): Promise<void> {
    await deleteSubvolume(this.path(mark), this.#pool.groups, signal);
  }
}
