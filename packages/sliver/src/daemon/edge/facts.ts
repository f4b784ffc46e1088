import { readFile } from "node:fs/promises";
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

/** Numbers of the cores that there are, in the kernel's words: "0-3,6". */
export async function onlineCores(): Promise<string> {
  return (await readFile("/sys/devices/system/cpu/online", "utf8")).trim();
}
