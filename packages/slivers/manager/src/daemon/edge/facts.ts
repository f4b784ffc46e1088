import { readFile } from "node:fs/promises";
import { availableParallelism, totalmem } from "node:os";
import { defined } from "@nodeyard/runtime";
import type { MachineFacts } from "../../core/capacity.ts";
import { DaemonConfigError } from "../../errors.ts";
import type { BackEnd } from "../../isolation/contract.ts";
import { deviceToWorld, linkSpeed } from "../../isolation/network/edge/host-network.ts";
import type { DaemonConfig } from "../config.ts";

/**
 * Checks `siblings`, which lists for each core the threads of its physical core. `online` is the text of /sys/devices/system/cpu/online,
 * such as "0-3,6". Throws DaemonConfigError for a core that would be assigned and does not exist.
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

/** Reads facts of the machine. Rejects with errors of the back end. */
export async function machineFacts(backEnd: BackEnd): Promise<MachineFacts> {
  const pool = await backEnd.poolSize?.();
  return { cores: availableParallelism(), memory: totalMemory(), ...defined({ pool }) };
}

/** bit/s that slivers share. */
export function linkOf({ machine, isolation }: Pick<DaemonConfig, "machine" | "isolation">): number {
  const { outbound } = isolation;
  return machine.link ?? linkSpeed((outbound === false ? undefined : outbound.device) ?? deviceToWorld());
}

/** Memory of the machine in KiB. */
export function totalMemory(): number {
  return Math.floor(totalmem() / 1024);
}

/** The existing cores in the kernel's notation: "0-3,6". */
export async function onlineCores(): Promise<string> {
  return (await readFile("/sys/devices/system/cpu/online", "utf8")).trim();
}
