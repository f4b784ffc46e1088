import { quantity, type Resources } from "@nodeyard/driver";
import { z } from "zod";
import type { LxdLabelOwn } from "./config.ts";
import type { Instance } from "./instances.ts";

/** Containers share the processors of their host; limits of more than this share of them would let machines starve. */
const CORES_PER_PROCESSOR = 4;
const MIB = 2 ** 20;
const GIB = 2 ** 30;

type Keys = Readonly<Record<string, string>>;
export const PROJECT = z.object({ config: z.record(z.string(), z.string()) });
const TOTAL = z.object({ total: z.number() });
export const RESOURCES = z.object({ cpu: TOTAL, memory: TOTAL });

/** Amounts by the names of a project's limits, and what one of each is in the server's notation. */
const LIMITS: Readonly<Record<string, readonly [name: string, unit: number]>> = {
  "limits.instances": ["instances", 1],
  "limits.containers": ["containers", 1],
  "limits.virtual-machines": ["virtual-machines", 1],
  "limits.cpu": ["cores", 1],
  "limits.memory": ["ram", MIB],
};

/** Number of "64MiB", in bytes, or of "2". Undefined for a share of the host ("50%"), and without a value. */
function numberOf(size = ""): number | undefined {
  const number = quantity(size.replace(/\s+|B$/g, ""));
  return Number.isNaN(number) ? undefined : number;
}

/** Processors of a set such as "0-1,3", or of a number; undefined without a value. */
function coresOf(cpu: string | undefined): number | undefined {
  if (cpu === undefined || /^\d+$/.test(cpu)) return numberOf(cpu);
  const ranges = cpu.split(",").map((range) => range.split("-").map(Number));
  return ranges.reduce((all, [first = 0, last = first]) => all + last - first + 1, 0);
}

/** What an instance uses. A virtual machine without limits has one processor and 1 GiB; a container without limits has none. */
export function amountsOf({ type, expanded_config: config }: Instance): Resources {
  const isVm = type === "virtual-machine";
  const cores = coresOf(config["limits.cpu"]) ?? (isVm ? 1 : 0);
  const bytes = numberOf(config["limits.memory"]) ?? (isVm ? GIB : 0);
  return { ...countsOf(type), cores, ram: Math.ceil(bytes / MIB) };
}

/** What an instance of a label will use. */
export const needOf = ({ type, cores, ram }: LxdLabelOwn): Resources => ({ ...countsOf(type), cores, ram });

const countsOf = (type: string) => ({ instances: 1, ...(type !== "" && { [`${type}s`]: 1 }) });

/** The limits of a project on some servers: the smaller of what it and they set. */
export function limitsOf(project: Keys, servers: readonly z.infer<typeof RESOURCES>[]): Resources {
  const limits: Record<string, number> = { cores: 0, ram: 0 };
  for (const { cpu, memory } of servers) {
    limits.cores! += cpu.total * CORES_PER_PROCESSOR;
    limits.ram! += Math.floor(memory.total / MIB);
  }
  for (const [key, [name, unit]] of Object.entries(LIMITS)) {
    const limit = numberOf(project[key]);
    if (limit !== undefined) limits[name] = Math.min(limits[name] ?? Infinity, Math.floor(limit / unit));
  }
  return limits;
}
