import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CommandError } from "../../../errors.ts";
import { run } from "../../edge/run.ts";
import type { QuotaTools } from "../quota-groups.ts";
import type { ListedSubvolume } from "./subvolume-list.ts";

/**
 * Reason of a failed `btrfs qgroup destroy` (btrfs-progs 6, locale C): the group does not exist, or it still counts data.
 * Undefined for every other reason, also when the pool itself does not exist.
 */
export function readRefusal(message: string): "gone" | "busy" | undefined {
  const [, reason] = /unable to destroy quota group: (.+?)\s*$/m.exec(message) ?? [];
  if (reason === "No such file or directory") return "gone";
  if (reason === "Device or resource busy") return "busy";
  return undefined;
}

/**
 * Notes are empty files in the pool itself, named by the subvolume's number. btrfs writes a note no later than the removal that follows
 * it, so a crash loses both or neither. Groups without a note belong to other users of the file system and are left alone.
 */
export class BtrfsQuota implements QuotaTools {
  readonly #pool: string;
  readonly #subvolumes: (signal: AbortSignal) => Promise<readonly ListedSubvolume[]>;

  constructor(pool: string, subvolumes: (signal: AbortSignal) => Promise<readonly ListedSubvolume[]>) {
    this.#pool = pool;
    this.#subvolumes = subvolumes;
  }

  async owed(signal: AbortSignal): Promise<readonly number[]> {
    const noted = (await readdir(this.#notes).catch(() => [])).filter((name) => /^\d{3,}$/.test(name));
    if (noted.length === 0) return [];
    // A subvolume that still exists had its removal interrupted before it began. Its group is still needed.
    const there = new Set((await this.#subvolumes(signal)).map(({ id }) => id));
    return noted.map(Number).filter((id) => !there.has(id));
  }

  async owe(id: number): Promise<void> {
    await mkdir(this.#notes, { recursive: true, mode: 0o700 });
    await writeFile(join(this.#notes, String(id)), "");
  }

  async settled(id: number): Promise<void> {
    await rm(join(this.#notes, String(id)), { force: true });
  }

  async dropped(ids: readonly number[], signal: AbortSignal): Promise<void> {
    await this.#btrfs(["subvolume", "sync", this.#pool, ...ids.map(String)], signal);
  }

  async commit(signal: AbortSignal): Promise<void> {
    await this.#btrfs(["filesystem", "sync", this.#pool], signal);
  }

  async destroy(id: number, signal: AbortSignal): Promise<"gone" | "busy"> {
    try {
      await this.#btrfs(["qgroup", "destroy", `0/${id}`, this.#pool], signal);
      return "gone";
    } catch (error) {
      const refusal = error instanceof CommandError ? readRefusal(error.message) : undefined;
      if (refusal === undefined) throw error;
      return refusal;
    }
  }

  get #notes(): string {
    return join(this.#pool, "groups");
  }

  /** The program is killed with this process. Otherwise it would keep the pool mounted. */
  async #btrfs(words: readonly string[], signal: AbortSignal): Promise<void> {
    await run(["btrfs", ...words], { signal, diesWithUs: true });
  }
}
