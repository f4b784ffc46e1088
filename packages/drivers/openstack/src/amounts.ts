import { type LabelConfig, type Resources, unlessRefused } from "@nodeyard/driver";
import { z } from "zod";
import type { Api, Flavor } from "./api/index.ts";
import type { Service } from "./client/index.ts";
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
  const addresses = networks.map((name) => ({ [name]: [{ addr: "192.0.2.1", version: 4 }] }));
  const wants = wantsFloatingIp({ addresses: Object.assign({}, ...addresses) }, floating);
  return wants ? { ports, "floating-ips": 1 } : { ports };
}

type Limits = Readonly<Record<string, unknown>>;
const LIMITS = z.object({ limits: z.object({ absolute: z.record(z.string(), z.unknown()) }) });
const QUOTA = z.object({ quota: z.record(z.string(), z.unknown()) });

/** The limits of the project. A cloud may have no cinder, and neutron may be missing or refuse to tell. */
export async function quotaOf({ nova, cinder, neutron }: Api, signal: AbortSignal): Promise<Resources> {
  const limits = async (service: Service) =>
    (await service.json(LIMITS, "GET", "/limits", signal)).limits.absolute;
  const ofNetwork = async () => {
    const project = await neutron.project(signal);
    if (project === null || !(await neutron.exists(signal))) return null;
    const asked = neutron.json(QUOTA, "GET", `/quotas/${project}`, signal);
    return (await unlessRefused(asked, 403, 404))?.quota ?? null;
  };
  const ofVolumes = async () => ((await cinder.exists(signal)) ? limits(cinder) : null);
  const [compute, volume, network] = await Promise.all([limits(nova), ofVolumes(), ofNetwork()]);
  return limitsOf({ compute, volume, network });
}

/** The limits of the services, by the names of `Resources`. Others count for nothing. */
const NAMES: Readonly<Record<string, string>> = {
  ...{ maxTotalInstances: "instances", maxTotalCores: "cores", maxTotalRAMSize: "ram" },
  ...{ maxTotalVolumes: "volumes", maxTotalVolumeGigabytes: "volume-gb" },
  ...{ port: "ports", floatingip: "floating-ips" },
};

/** Combines the limits of several services. -1, or a limit that a service does not report, means no limit. */
export function limitsOf(answers: Record<"compute" | "volume" | "network", Limits | null>): Resources {
  const limits: Record<string, number> = {};
  for (const [key, limit] of Object.values(answers).flatMap((one) => Object.entries(one ?? {}))) {
    const name = NAMES[key];
    if (name !== undefined && typeof limit === "number" && limit >= 0) limits[name] = limit;
  }
  return limits;
}
