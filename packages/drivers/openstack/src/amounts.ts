import type { LabelConfig, Resources } from "@nodeyard/driver";
import type { Flavor } from "./api/compute.ts";
import type { OpenstackLabelOwn } from "./config.ts";
import { type Reach, wantsFloatingIp } from "./machines/addresses.ts";

/** Amounts of quota; names as in `Resources`. */

/** The amounts of one node. A boot volume counts in cinder's quota, not as a disk of the flavor. */
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
 * The ports and floating IPs of a server: one port for each network, and a floating IP when the networks are known to be internal.
 * `networks`: names; empty when the cloud chooses a network, which shows only afterwards whether it is internal.
 */
export function networkNeed(networks: readonly string[], floating: Reach | null): Resources {
  const ports = Math.max(1, networks.length);
  if (floating === null || networks.length === 0) return { ports };
  // The rule for a real server decides (`wantsFloatingIp`), on a server with one made-up IPv4 address in each network.
  const addresses = networks.map((name): [string, { addr: string; version: number }[]] => [
    name,
    [{ addr: "192.0.2.1", version: 4 }],
  ]);
  const wants = wantsFloatingIp({ addresses: Object.fromEntries(addresses) }, floating);
  return wants ? { ports, "floating-ips": 1 } : { ports };
}

/**
 * The type of a label's machines. Labels with one flavor use the same hosts, so their launches fail together; volumes do not come from
 * these hosts.
 */
export function machineType({ own }: Pick<LabelConfig<OpenstackLabelOwn>, "own">): string {
  const flavor = own.minRam > 0 ? `${own.flavorName ?? "any"}, ${own.minRam} MiB` : own.flavorName;
  return own.volumeSize === null ? `${flavor}` : `${flavor}, on a volume`;
}

/** Combines the limits of several services. -1, or a limit that a service does not report, means no limit. */
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
  /** By neutron's names; null when neutron may not be asked. */
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
