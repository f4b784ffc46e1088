import { add, type Resources } from "@nodeyard/driver";
import type { Google } from "./client/google.ts";
import type { GceLabelOwn } from "./config.ts";

/** Size of a machine type. */
export interface MachineType {
  readonly guestCpus: number;
  readonly memoryMb: number;
}

/** The size of a type in a zone, cached. */
export type TypeOf = (zone: string, type: string, signal: AbortSignal) => Promise<MachineType>;

interface Quota {
  readonly metric: string;
  readonly limit: number;
  readonly usage: number;
}

/** Families that share the quota CPUS (Compute Engine, "Allocation quotas"). The others have one of their own, the newest none that is read. */
const COMMON = /^(f1|g1|n1|e2|custom)$/;
/** Metrics of the API whose amounts the driver knows, besides those of families. */
const GLOBAL = "CPUS_ALL_REGIONS";
const NAMES: Readonly<Record<string, string>> = { INSTANCES: "instances" };
const KNOWN = /^(\w+_)?CPUS$|^(IN_USE_ADDRESSES|SSD_TOTAL_GB|DISKS_TOTAL_GB|INSTANCES)$/;

/** What a machine uses: cores and memory for limits of the file, and the metrics of Google's quotas under their own names. */
export function machineAmounts(
  type: string,
  { guestCpus, memoryMb }: MachineType,
  spot: boolean,
  publicIpv4: boolean,
): Resources {
  const family = type.split("-", 1)[0]!;
  const metric = spot ? "PREEMPTIBLE_CPUS" : COMMON.test(family) ? "CPUS" : `${family.toUpperCase()}_CPUS`;
  return {
    ...{ instances: 1, cores: guestCpus, ram: memoryMb, [metric]: guestCpus, [GLOBAL]: guestCpus },
    ...(publicIpv4 && { IN_USE_ADDRESSES: 1 }),
  };
}

/** What a disk uses. Hyperdisks have quotas that are not read here. */
export function diskAmounts(type: string, gb: number): Resources {
  if (type === "pd-standard") return { DISKS_TOTAL_GB: gb };
  return type === "pd-ssd" || type === "pd-balanced" ? { SSD_TOTAL_GB: gb } : {};
}

/** One node of a label. */
export function labelAmounts(own: GceLabelOwn, type: MachineType): Resources {
  const { instanceType, spot, publicIpv4, volumeType, volumeSize } = own;
  return add(machineAmounts(instanceType, type, spot, publicIpv4), diskAmounts(volumeType, volumeSize));
}

/**
 * The limits of the region and of the project. That of the project's CPUs is less by what other regions use, whose machines are not listed.
 * A quota of 0 for spot machines means that they use the common one, which Google itself then holds.
 */
export async function limitsOf(google: Google, region: string, signal: AbortSignal): Promise<Resources> {
  const read = async (path: string) =>
    (await google.compute<{ readonly quotas?: readonly Quota[] }>({ method: "GET", path }, signal)).quotas ??
    [];
  const [here, everywhere] = await Promise.all([read(`/regions/${region}`), read("")]);
  const limits: Record<string, number> = {};
  for (const { metric, limit } of here)
    if (
      KNOWN.test(metric) &&
      !metric.startsWith("COMMITTED_") &&
      !(metric === "PREEMPTIBLE_CPUS" && limit === 0)
    )
      limits[NAMES[metric] ?? metric] = limit;
  const all = everywhere.find(({ metric }) => metric === GLOBAL);
  if (all !== undefined) {
    const used = here.filter(({ metric }) => metric.endsWith("CPUS") && !metric.startsWith("COMMITTED_"));
    const elsewhere = Math.max(0, all.usage - used.reduce((sum, { usage }) => sum + usage, 0));
    limits[GLOBAL] = Math.max(0, all.limit - elsewhere);
  }
  return limits;
}
