import type { Resources } from "@nodeyard/driver";
import { z } from "zod";

/** Containers share the processors of their host; limits of more than this share of them would let machines starve. */
const CORES_PER_PROCESSOR = 4;

export const PROJECT = z.object({ config: z.record(z.string(), z.string()) });
export const RESOURCES = z.object({
  cpu: z.object({ total: z.number() }),
  memory: z.object({ total: z.number() }),
});

/** Names of a project's limits on amounts, and of the amounts. */
const COUNTS = {
  "limits.instances": "instances",
  "limits.containers": "containers",
  "limits.virtual-machines": "virtual-machines",
  "limits.cpu": "cores",
};

/** Bytes of a unit in the server's notation of sizes; without a unit a number is bytes. */
const UNITS: Readonly<Record<string, number>> = {
  ...{ "": 1, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 },
  ...{ KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 },
};

/** Bytes of "64MiB". Undefined for a share of the host ("50%"), and without a value. */
export function bytesOf(size: string | undefined): number | undefined {
  const [, digits, unit = ""] = /^(\d+)\s*([a-zA-Z]*)$/.exec(size ?? "") ?? [];
  const factor = UNITS[unit];
  return digits === undefined || factor === undefined ? undefined : Number(digits) * factor;
}

/** Processors of "2", or of a set as in "0-1,3". Undefined without a value. */
function coresOf(cpu: string | undefined): number | undefined {
  if (cpu === undefined || /^\d+$/.test(cpu)) return cpu === undefined ? undefined : Number(cpu);
  return cpu.split(",").reduce((sum, range) => {
    const [first = 0, last = first] = range.split("-").map(Number);
    return sum + last - first + 1;
  }, 0);
}

/** What an instance with these keys and devices uses. A virtual machine without limits has one processor and 1 GiB; a container has none. */
export function amountsOf(
  type: string,
  config: Readonly<Record<string, string>>,
  devices: Readonly<Record<string, Readonly<Record<string, string>>>>,
): Resources {
  const isVm = type === "virtual-machine";
  const root = Object.values(devices).find(({ type: kind, path }) => kind === "disk" && path === "/");
  const disk = bytesOf(root?.size);
  return {
    instances: 1,
    [isVm ? "virtual-machines" : "containers"]: 1,
    cores: coresOf(config["limits.cpu"]) ?? (isVm ? 1 : 0),
    ram: Math.ceil((bytesOf(config["limits.memory"]) ?? (isVm ? 2 ** 30 : 0)) / 2 ** 20),
    ...(disk === undefined ? {} : { "disk-gb": Math.ceil(disk / 2 ** 30) }),
  };
}

/** The limits of a project on some servers: the smaller of what the project and the server set. */
export function limitsOf(
  project: Readonly<Record<string, string>>,
  servers: readonly z.infer<typeof RESOURCES>[],
): Resources {
  const sum = (of: (one: z.infer<typeof RESOURCES>) => number) =>
    servers.reduce((all, one) => all + of(one), 0);
  const limits: Record<string, number> = {
    cores: sum(({ cpu }) => cpu.total) * CORES_PER_PROCESSOR,
    ram: Math.floor(sum(({ memory }) => memory.total) / 2 ** 20),
  };
  const lower = (name: string, value: number | undefined) => {
    if (value !== undefined && Number.isFinite(value)) limits[name] = Math.min(limits[name] ?? value, value);
  };
  for (const [key, name] of Object.entries(COUNTS))
    if (project[key] !== undefined) lower(name, Number(project[key]));
  const memory = bytesOf(project["limits.memory"]);
  const disk = bytesOf(project["limits.disk"]);
  lower("ram", memory && Math.floor(memory / 2 ** 20));
  lower("disk-gb", disk && Math.floor(disk / 2 ** 30));
  return limits;
}
