import { statfs } from "node:fs/promises";
import { availableParallelism, totalmem } from "node:os";
import type { MachineFacts } from "../../core/index.ts";
import type { DaemonConfig } from "../config.ts";
import { DaemonConfigError } from "../errors.ts";

/** Looks at the machine. Throws DaemonConfigError when the folder of the pool cannot be looked at. */
export async function machineFacts({ isolation: { pool } }: DaemonConfig): Promise<MachineFacts> {
  const bytes = "bytes" in pool ? pool.bytes : await sizeOf(pool.folder);
  return {
    cores: availableParallelism(),
    memory: Math.floor(totalmem() / 1024),
    pool: Math.floor(bytes / 1024),
  };
}

async function sizeOf(folder: string): Promise<number> {
  try {
    const { bsize, blocks } = await statfs(folder);
    return bsize * blocks;
  } catch (cause) {
    const message = `isolation.pool.folder: ${folder} cannot be looked at: ${(cause as Error).message}`;
    throw new DaemonConfigError(message, { cause });
  }
}
