import type { LabelConfig, Resources } from "@nodeyard/driver";
import type { Flavor } from "./api/compute.ts";
import type { OpenstackLabelOwn } from "./own.ts";

/** Quota arithmetic; names as in `Resources`. */

export function needOf(
  flavor: Pick<Flavor, "vcpus" | "ram">,
  label: LabelConfig<OpenstackLabelOwn>,
): Resources {
  const { volumeSize } = label.own;
  const volume = volumeSize === null ? {} : { volumes: 1, "volume-gb": volumeSize };
  return { instances: 1, cores: flavor.vcpus, ram: flavor.ram, ...volume };
}

/** Limits of several services as one; -1 and what a service does not tell are no limit. */
export function limitsOf(answers: {
  readonly compute: {
    readonly maxTotalInstances?: number | undefined;
    readonly maxTotalCores?: number | undefined;
    readonly maxTotalRAMSize?: number | undefined;
  };
  readonly volume: {
    readonly maxTotalVolumes?: number | undefined;
    readonly maxTotalVolumeGigabytes?: number | undefined;
  } | null;
}): Resources {
  const named = {
    instances: answers.compute.maxTotalInstances,
    cores: answers.compute.maxTotalCores,
    ram: answers.compute.maxTotalRAMSize,
    volumes: answers.volume?.maxTotalVolumes,
    "volume-gb": answers.volume?.maxTotalVolumeGigabytes,
  };
  const limits: Record<string, number> = {};
  for (const [name, limit] of Object.entries(named))
    if (limit !== undefined && limit >= 0) limits[name] = limit;
  return limits;
}
