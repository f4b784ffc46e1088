import {
  cloudProvider,
  type DriverContext,
  type LabelConfig,
  type OpenFile,
  type Place,
  type Provider,
  type Resources,
} from "@nodeyard/driver";
import { limitsOf, machineType, needOf, networkNeed } from "./amounts.ts";
import type { Server } from "./api/compute.ts";
import type { Cloud } from "./clouds/index.ts";
import type { OpenstackLabelOwn, OpenstackPoolOwn, OpenstackProviderConfig } from "./config.ts";
import type { Lease } from "./credentials.ts";
import { mapError } from "./errors.ts";
import { glanceStore } from "./images/store.ts";
import { besideServers } from "./leaks.ts";
import type { Lookups } from "./lookups/lookups.ts";
import { networksFor } from "./machines/addresses.ts";
import { type Parts, partsOf } from "./machines/parts.ts";
import { reachOf, serverWork } from "./machines/steps.ts";

/** Lines of a console that are read. */
const CONSOLE_LINES = 200;

/** What a provider has of its host. */
export interface ProviderHandles {
  /** Its share of a credential. Throws CloudConfigError. */
  readonly lease: () => Lease;
  readonly ipv6: boolean;
  readonly openFile: OpenFile;
}

/** Opens a provider of the cloud. Credential and region are checked now, so that an error shows here and not at the first launch. */
export function openstackProvider(
  config: OpenstackProviderConfig,
  context: DriverContext,
  { lease: leased, ipv6, openFile }: ProviderHandles,
): Promise<Provider> {
  return cloudProvider<Server>(config, mapError, (closed) => {
    const lease = leased();
    const parts = partsOf(config, context, lease, ipv6, closed);
    const { nova, neutron, cinder, glance, lookups, watch, floatingIps, cloud } = parts;
    const { clock } = context;
    let project: string | null = null;
    const quota = async (signal: AbortSignal) => {
      const [compute, volume, network] = await Promise.all([
        nova.limits(signal),
        cinder.limits(signal),
        neutron.quota(signal),
      ]);
      return limitsOf({ compute, volume, network });
    };
    return {
      ...serverWork(parts),
      parts: besideServers(parts),
      amounts: (listed, signal) => amountsOf(lookups, listed, signal),
      quota,
      need: (label: LabelConfig<OpenstackLabelOwn>, signal) => need(parts, label, signal),
      console: (id, signal) => nova.console(id, CONSOLE_LINES, signal),
      offers: {
        types: { of: (label) => machineType(label as LabelConfig<OpenstackLabelOwn>) },
        pace: { now: () => lease.session.limiter },
        zones: { list: (_pool, signal) => lookups.zones(signal) },
        images: glanceStore({ glance, cloud, clock, openFile, uploadMs: config.own.imageUploadTimeoutMs }),
      },
      place: () => placeOf(cloud, project),
      async check(signal) {
        project = (await lease.session.token(signal)).projectId;
        await quota(signal);
      },
      async close() {
        watch.close();
        lookups.close();
        floatingIps.close();
        await lease.release();
      },
    };
  });
}

/** By the address of keystone, since two clouds may have one name in two files. */
function placeOf({ credential, place: { region } }: Cloud, project: string | null): Place {
  const { host } = new URL(credential.authUrl);
  return { cloud: host, ...(region !== null && { region }), ...(project !== null && { project }) };
}

/**
 * What one node of a label uses. Also checks that its image, networks and flavor exist: rejects with kind "configuration" when
 * one does not.
 */
async function need(
  parts: Parts,
  label: LabelConfig<OpenstackLabelOwn>,
  signal: AbortSignal,
): Promise<Resources> {
  const { config, cloud, lookups } = parts;
  const { cloudImage, networks } = label.own;
  if (cloudImage !== null) await lookups.cloudImage(cloudImage, signal);
  const names = await lookups.networkNames(networksFor(networks, cloud.networks), signal);
  // By identity, because several pools may have a label of that name.
  const pool = config.pools.find(({ labels }) => labels.get(label.name) === label);
  const floats = cloud.floatingIps && (pool?.own as OpenstackPoolOwn | undefined)?.autoFloatingIp === true;
  const reach = floats ? await reachOf(parts, signal) : null;
  return needOf(await lookups.flavor(label, signal), label, networkNeed(names, reach));
}

/**
 * Cores and RAM of servers. Flavors are inline since microversion 2.47; before, or for deleted flavors, only if the flavor is
 * known. Otherwise they count as 0, so the quota seems freer than it is, and nova's refusal decides.
 */
async function amountsOf(
  lookups: Lookups,
  servers: readonly Server[],
  signal: AbortSignal,
): Promise<(server: Server) => Resources> {
  const sizes = new Map<string, Resources>();
  for (const { flavor } of servers) {
    if (flavor.vcpus !== undefined || flavor.id === undefined || sizes.has(flavor.id)) continue;
    const known = await lookups.flavorById(flavor.id, signal);
    if (known !== undefined) sizes.set(flavor.id, { cores: known.vcpus, ram: known.ram });
  }
  return ({ flavor }) => ({
    instances: 1,
    ...(sizes.get(flavor.id ?? "") ?? { cores: flavor.vcpus ?? 0, ram: flavor.ram ?? 0 }),
  });
}
