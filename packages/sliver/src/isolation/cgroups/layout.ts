/** Controllers that limits are written to. `freezer` is a controller of its own in v1 only. */
export const CONTROLLERS = ["cpu", "cpuset", "memory", "pids", "io", "devices", "freezer"] as const;
export type Controller = (typeof CONTROLLERS)[number];

export interface Hierarchy {
  readonly version: 1 | 2;
  /** Where it is mounted. */
  readonly mount: string;
}

export interface CgroupLayout {
  /** Every hierarchy that is mounted, also those without a controller of ours: LXC makes groups in all of them. */
  readonly hierarchies: readonly Hierarchy[];
  /** Absent: this machine does not have it, or it is held by a hierarchy that is not mounted here. */
  readonly controllers: ReadonlyMap<Controller, Hierarchy>;
}

/**
 * Reads /proc/self/mountinfo, controller by controller: on hybrid machines some are in v1 and the rest in v2.
 * `v2Controllers` is what `cgroup.controllers` of that mount says.
 */
export function readLayout(
  mountinfo: string,
  v2Controllers: (mount: string) => readonly string[],
): CgroupLayout {
  const hierarchies: Hierarchy[] = [];
  const controllers = new Map<Controller, Hierarchy>();
  for (const line of mountinfo.split("\n")) {
    const [left, right] = line.split(" - ");
    const mount = left?.split(" ")[4]?.replaceAll("\\040", " ");
    const [type, , options] = right?.split(" ") ?? [];
    if (mount === undefined || (type !== "cgroup" && type !== "cgroup2")) continue;
    const version = type === "cgroup" ? 1 : 2;
    if (hierarchies.some((one) => one.mount === mount)) continue;
    const hierarchy = { version, mount } as const;
    hierarchies.push(hierarchy);
    const names = version === 2 ? v2Controllers(mount) : (options ?? "").split(",");
    for (const controller of CONTROLLERS)
      if (names.includes(oldName(controller, version)) && !controllers.has(controller))
        controllers.set(controller, hierarchy);
  }
  return { hierarchies, controllers };
}

/**
 * Reads /proc/1/cgroup. LXC makes its groups below that of process 1, unless that is systemd's `/init.scope`: below any other they would
 * not be in those that our limits are written to. Undefined: they will be.
 */
export function strayingGroup(processOne: string): string | undefined {
  const groups = processOne.split("\n").map((line) => line.split(":").slice(2).join(":"));
  return groups.find((group) => !["", "/", "/init.scope"].includes(group));
}

function oldName(controller: Controller, version: 1 | 2): string {
  return controller === "io" && version === 1 ? "blkio" : controller;
}
