import type { LabelConfig, Resources } from "@nodeyard/driver";
import type { Flavor } from "./api/compute.ts";
import type { OpenstackLabelOwn } from "./config.ts";
import { type Reach, wantsFloatingIp } from "./machines/addresses.ts";

/** Quota arithmetic; names as in `Resources`. */

export function needOf(
  flavor: Pick<Flavor, "vcpus" | "ram">,
  label: LabelConfig<OpenstackLabelOwn>,
  network: Resources,
): Resources {
  const { volumeSize } = label.own;
  const volume = volumeSize === null ? {} : { volumes: 1, "volume-gb": volumeSize };
  return { instances: 1, cores: flavor.vcpus, ram: flavor.ram, ...volume, ...network };
}

/**
 * A port for each network, and a floating IP where the networks are known to be inner ones. `networks`: names; none: the cloud
 * chooses one, and whether it is an inner one only shows afterwards.
 */
export function networkNeed(networks: readonly string[], floating: Reach | null): Resources {
  const ports = Math.max(1, networks.length);
  if (floating === null || networks.length === 0) return { ports };
  const addresses = networks.map((name): [string, { addr: string; version: number }[]] => [
    name,
    [{ addr: "192.0.2.1", version: 4 }],
  ]);
  const wants = wantsFloatingIp({ addresses: Object.fromEntries(addresses) }, floating);
  return wants ? { ports, "floating-ips": 1 } : { ports };
}

/** Labels of one flavor find the same hosts, and fail together where there are none; volumes come from elsewhere. */
export function machineType({ own }: Pick<LabelConfig<OpenstackLabelOwn>, "own">): string {
  const flavor = own.minRam > 0 ? `${own.flavorName ?? "any"}, ${own.minRam} MiB` : own.flavorName;
  return own.volumeSize === null ? `${flavor}` : `${flavor}, on a volume`;
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
  /** By neutron's names; null: may not be asked. */
  readonly network: Readonly<Record<string, unknown>> | null;
}): Resources {
  const named = {
    instances: answers.compute.maxTotalInstances,
    cores: answers.compute.maxTotalCores,
    ram: answers.compute.maxTotalRAMSize,
    volumes: answers.volume?.maxTotalVolumes,
    "volume-gb": answers.volume?.maxTotalVolumeGigabytes,
    ports: answers.network?.port,
    "floating-ips": answers.network?.floatingip,
  };
  const limits: Record<string, number> = {};
  for (const [name, limit] of Object.entries(named))
    if (typeof limit === "number" && limit >= 0) limits[name] = limit;
  return limits;
}
