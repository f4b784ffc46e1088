import {
  type DriverContext,
  type LabelConfig,
  type OpenFile,
  type Provider,
  provide,
  type Resources,
  type StepContext,
  type Tag,
} from "@nodeyard/driver";
import { limitsOf, machineType, needOf, networkNeed } from "./amounts.ts";
import type { Server } from "./api/compute.ts";
import type { OpenstackLabelOwn, OpenstackPoolOwn, OpenstackProviderConfig } from "./config.ts";
import type { Lease } from "./credentials.ts";
import { mapError } from "./errors.ts";
import { glanceStore } from "./images/store.ts";
import { resourcesOf } from "./leaks/resources.ts";
import type { Lookups } from "./lookups/lookups.ts";
import { networksFor } from "./machines/addresses.ts";
import { type Parts, partsOf } from "./machines/parts.ts";
import { idOf } from "./machines/servers.ts";
import { reachOf, serverSteps } from "./machines/steps.ts";

/** Lines of a console that are read. */
const CONSOLE_LINES = 200;

/**
 * Makes a provider of the cloud. No I/O: the first call of a method connects. `mapError` translates the errors of all methods at
 * one place.
 */
export function openstackProvider(
  config: OpenstackProviderConfig,
  context: DriverContext,
  { lease, ipv6, openFile }: { readonly lease: Lease; readonly ipv6: boolean; readonly openFile: OpenFile },
): Provider {
  // Ends creates that continue after their callers gave up (`Servers.create`).
  const closed = new AbortController();
  const parts = partsOf(config, context, lease, ipv6, closed.signal);
  const { nova, neutron, cinder, glance, lookups, watch, servers, floatingIps, cloud } = parts;
  const { clock } = context;
  return provide(
    config.name,
    {
      offers: {
        types: { of: (label) => machineType(label as LabelConfig<OpenstackLabelOwn>) },
        pace: { now: () => lease.session.limiter },
        zones: { list: (_pool, signal) => lookups.zones(signal) },
        console: { read: (tag, step) => consoleOf(parts, tag, step) },
        images: glanceStore({ glance, cloud, clock, openFile, uploadMs: config.own.imageUploadTimeoutMs }),
      },
      ...serverSteps(parts),
      find: async (tag, signal, stored = null) => (await servers.find(tag, stored, signal))?.id,
      async list(signal) {
        // Servers are listed last, so that parts of a server that is created meanwhile find their server in the list.
        const [ports, ips, volumes, images] = await Promise.all([
          neutron.ports(signal),
          neutron.floatingIps(signal),
          cinder.volumes(signal),
          glance.own({ nodepool_provider_name: config.name }, signal),
        ]);
        const listed = [...(await watch.whole(signal)).values()];
        const all = { servers: listed, ports, floatingIps: ips, volumes, images };
        const amounts = await amountsOf(lookups, listed, signal);
        return resourcesOf(all, { evidence: parts.evidence, amounts, ports: config.own.portCleanup });
      },
      /** A leaked server takes its floating IP with it, as `remove` does, and is waited for. Other types are deleted by one call. */
      async removeResource({ type, id, tag }, signal) {
        const name = idOf(id);
        // An id in a form that no version of this driver stores cannot be one of its resources.
        if (name === undefined) return;
        if (type === "port") return neutron.deletePort(name, signal);
        if (type === "floatingip") return neutron.deleteFloatingIp(name, signal);
        if (type === "volume") return cinder.delete(name, signal);
        if (type === "image") return glance.delete(name, signal);
        if (tag !== null && cloud.floatingIps) await floatingIps.removeOf(tag, signal);
        await nova.delete(name, signal);
        await servers.gone(name, config.name, signal);
      },
      async quota(signal) {
        // When every pool ignores the cloud's quota, the cloud is not asked.
        if (config.pools.every(({ ignoreProviderQuota }) => ignoreProviderQuota)) return {};
        const [compute, volume, network] = await Promise.all([
          nova.limits(signal),
          cinder.limits(signal),
          neutron.quota(signal),
        ]);
        return limitsOf({ compute, volume, network });
      },
      need: (label, signal) => need(parts, label as LabelConfig<OpenstackLabelOwn>, signal),
      async close() {
        closed.abort(new Error(`provider ${config.name} is closed`));
        watch.close();
        lookups.close();
        floatingIps.close();
        await lease.release();
      },
    },
    mapError,
  );
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

/** The end of the console of a tag's server; null when there is no server or no console. */
async function consoleOf({ servers, nova }: Parts, tag: Tag, step: StepContext): Promise<string | null> {
  const server = await servers.existing(tag, step.externalId, step.signal);
  return server === undefined ? null : nova.console(server.id, CONSOLE_LINES, step.signal);
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
