import { availableParallelism, totalmem } from "node:os";
import type { MachineFacts } from "../../core/index.ts";
import type { BackEnd } from "../../isolation/index.ts";

/** Looks at the machine. Rejects with what the back end rejects with. */
export async function machineFacts(backEnd: BackEnd): Promise<MachineFacts> {
  const pool = await backEnd.poolSize?.();
  return {
    cores: availableParallelism(),
    memory: Math.floor(totalmem() / 1024),
    ...(pool === undefined ? {} : { pool }),
  };
}
