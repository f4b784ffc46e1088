import { readFile } from "node:fs/promises";
import { strayingGroup } from "../../cgroups/index.ts";
import { MachineError } from "../../errors.ts";
import { clashes } from "../id-ranges.ts";

/**
 * Throws MachineError where a sliver would not be kept to its limits, or would share its ids: then none may be made or started. Those
 * that there are can be ended all the same.
 */
export async function demandFitMachine(): Promise<void> {
  const straying = strayingGroup(await text("/proc/1/cgroup"));
  if (straying !== undefined)
    throw new MachineError(
      `process 1 of this machine is in control group ${straying}, below which LXC would start slivers without their limits: ` +
        "start it in / or in /init.scope",
    );
  for (const file of ["/etc/passwd", "/etc/group", "/etc/subuid", "/etc/subgid"]) {
    const clash = clashes(await text(file), file.startsWith("/etc/sub"));
    if (clash !== undefined)
      throw new MachineError(`${file} gives ids of slivers to ${clash}; no other user may have them`);
  }
}

async function text(file: string): Promise<string> {
  return readFile(file, "utf8").catch(() => "");
}
