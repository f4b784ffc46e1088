import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { IsolationOptions } from "../../../src/isolation/lxc/options.ts";
import type { Pool } from "../../../src/isolation/storage/edge/pool.ts";

/** Of what an unpacked image has beside it. */
const FORMAT = 2;

/**
 * A pool with the default image unpacked in it, kept beside the archive: unpacking is what takes longest in most files, and is the
 * business of one. It may be of an older archive, and is then unpacked into. Undefined where there is none to be had: a pool that is
 * the machine's, or another image.
 */
export function seedOf({ cache, pool, images, defaultImage }: IsolationOptions): string | undefined {
  const source = images[defaultImage];
  if (cache === undefined || !("bytes" in pool) || source === undefined || "tar" in source) return undefined;
  const key = createHash("sha256").update(JSON.stringify([images, defaultImage, pool, FORMAT]));
  return join(cache, `test-pool-${key.digest("hex").slice(0, 16)}.img`);
}

/** Puts a copy where a pool is to be. */
export function plant(seed: string, folder: string): void {
  copy(seed, join(folder, "pool.img"));
}

/** Keeps a pool as it is now for the next file. */
export async function keep(pool: Pool, seed: string, folder: string, signal: AbortSignal): Promise<void> {
  await pool.leave(signal);
  copy(join(folder, "pool.img"), seed);
  await pool.prepare(signal);
}

function copy(from: string, to: string): void {
  const half = `${to}.${process.pid}`;
  try {
    execFileSync("cp", ["--sparse=always", "--reflink=auto", from, half]);
    renameSync(half, to);
  } finally {
    rmSync(half, { force: true });
  }
}
