import type { LabelConfig, Resources } from "@nodeyard/driver";
import type { QemuLabelOwn, QemuProviderOwn } from "../config.ts";

/** Memory of QEMU besides the guest's, in MiB: translated code (64) and its own (measured: 20 to 40). */
const OVERHEAD_MIB = 112;
/** Default of `max-cores`: virtual processors per processor of the host. */
const CORES_PER_PROCESSOR = 4;
/** Memory that is left to the host by default, MiB. */
const HOST_MIB = 1024;

/** Resources of the host. */
export interface HostAmounts {
  /** As many as this process may use (`os.availableParallelism`). */
  readonly processors: number;
  /** MiB */
  readonly memory: number;
  /** GiB of the file system that holds the folder. */
  readonly disk: number;
}

/** Disks count with the largest size that they can reach. */
export function needOf(label: LabelConfig): Resources {
  const { cores, ram, disk } = label.own as QemuLabelOwn;
  return { instances: 1, cores, ram: ram + OVERHEAD_MIB, "disk-gb": disk };
}

/** Limits of the folder: those of the configuration, otherwise what the host has. User ids bound the machines, as each needs one. */
export function quotaOf({ limits, users }: QemuProviderOwn, host: HostAmounts): Resources {
  const numbers = users === null ? Number.POSITIVE_INFINITY : users.last - users.first + 1;
  const instances = Math.min(limits.instances, numbers);
  return {
    ...(Number.isFinite(instances) ? { instances } : {}),
    cores: limits.cores ?? host.processors * CORES_PER_PROCESSOR,
    ram: limits.ram ?? Math.max(0, host.memory - HOST_MIB),
    "disk-gb": host.disk,
  };
}
