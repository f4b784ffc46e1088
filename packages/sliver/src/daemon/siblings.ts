import { DaemonConfigError } from "./errors.ts";

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
