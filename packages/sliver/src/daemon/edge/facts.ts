import { readFile } from "node:fs/promises";
import { availableParallelism, totalmem } from "node:os";
import type { MachineFacts } from "../../core/capacity.ts";
import { DaemonConfigError } from "../../errors.ts";
import type { BackEnd } from "../../isolation/contract.ts";
import { deviceToWorld, linkSpeed } from "../../isolation/network/edge/host-network.ts";
import type { DaemonConfig } from "../config.ts";

/**
 * `siblings` lists for each core, from 0 on, the threads of its physical core; `online` is what the kernel says in
 * /sys/devices/system/cpu/online, as "0-3,6". Throws DaemonConfigError for a core that would be handed out and is not there.
 */
export function checkSiblings(siblings: readonly (readonly number[])[], online: string): void {
  const cores = coresOf(online);
  siblings.forEach((threads, core) => {
    const wrong = [core, ...threads].find((one) => !cores.has(one));
    if (wrong !== undefined)
      throw new DaemonConfigError(
        `machine.siblings.${core} is about core ${wrong}, and this machine has ${online}: ` +
          "list its own (lscpu -e shows them), or leave machine.siblings out to hand out no whole cores",
      );
    if (!threads.includes(core))
      throw new DaemonConfigError(
        `machine.siblings.${core} is [${threads.join(", ")}]: it lists the threads of one physical core, core ${core} itself included`,
      );
  });
}

function coresOf(online: string): ReadonlySet<number> {
  const cores = new Set<number>();
  for (const range of online.split(",")) {
    const [first = Number.NaN, last = first] = range.split("-").map(Number);
    for (let core = first; core <= last; core++) cores.add(core);
  }
  return cores;
}

/** Looks at the machine. Rejects with what the back end rejects with. */
export async function machineFacts(backEnd: BackEnd): Promise<MachineFacts> {
  const pool = await backEnd.poolSize?.();
  return {
    cores: availableParallelism(),
    memory: totalMemory(),
    ...(pool === undefined ? {} : { pool }),
  };
}

/** bit/s that slivers share. */
export function linkOf({ machine, isolation }: Pick<DaemonConfig, "machine" | "isolation">): number {
  const { outbound } = isolation;
  return machine.link ?? linkSpeed((outbound === false ? undefined : outbound.device) ?? deviceToWorld());
}

/** KiB of the machine. */
export function totalMemory(): number {
  return Math.floor(totalmem() / 1024);
}

/** Numbers of the cores that there are, in the kernel's words: "0-3,6". */
export async function onlineCores(): Promise<string> {
  return (await readFile("/sys/devices/system/cpu/online", "utf8")).trim();
}
