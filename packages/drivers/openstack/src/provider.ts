import {
  type Cloud,
  type DriverContext,
  type LabelConfig,
  launchedLabels,
  type Resources,
  unlessRefused,
} from "@nodeyard/driver";
import { z } from "zod";
import { needOf, networkNeed, quotaOf } from "./amounts.ts";
import type { Server } from "./api/index.ts";
import type { OpenstackLabelOwn, OpenstackProviderConfig } from "./config.ts";
import { glanceStore } from "./images/store.ts";
import { besideServers } from "./leaks.ts";
import { networksFor } from "./machines/addresses.ts";
import { actionOf, suspendsOf } from "./machines/servers.ts";
import { reachOf, serverWork } from "./machines/steps.ts";
import { type Handles, type Parts, partsOf } from "./parts.ts";

/** Lines of a console that are read. */
const CONSOLE_LINES = 200;

/** A provider of the cloud. Credential and region are checked when it opens, so that an error shows then and not at the first launch. */
export function openstackCloud(
  config: OpenstackProviderConfig,
  context: DriverContext,
  handles: Handles,
): Cloud<Server> {
  const parts = partsOf(config, context, handles);
  const { api, lookups, floatingIps } = parts;
  const { credential, place } = parts.cloud;
  let project: string | null = null;
  return {
    ...{ ...serverWork(parts), suspends: suspendsOf(parts) },
    parts: besideServers(parts),
    amounts: (server, signal) => amountsOf(parts, server, signal),
    quota: (signal) => quotaOf(api, signal),
    need: (label: LabelConfig<OpenstackLabelOwn>, signal) => need(parts, label, signal),
    console: (id, signal) => consoleOf(parts, id, signal),
    zones: (_, signal) => lookups.zones(signal),
    ...{ limiter: handles.session.limiter, images: glanceStore(parts) },
    // By the address of keystone, since two clouds may have one name in two files.
    place: () => ({
      cloud: new URL(credential.authUrl).host,
      ...(place.region !== null && { region: place.region }),
      ...(project !== null && { project }),
    }),
    async check(signal) {
      project = await api.nova.project(signal);
      await quotaOf(api, signal);
    },
    close() {
      lookups.close();
      floatingIps.close();
    },
  };
}

/** The end of the console output; null when the server or its console does not exist. */
async function consoleOf({ api }: Parts, id: string, signal: AbortSignal): Promise<string | null> {
  const json = { "os-getConsoleOutput": { length: CONSOLE_LINES } };
  const asked = api.nova.json(z.object({ output: z.string() }), "POST", actionOf(id), signal, { json });
  // 409: the server is not started yet. 501: the hypervisor has no console.
  return (await unlessRefused(asked, 404, 409, 501))?.output ?? null;
}

/** What one node of a label uses. Rejects with kind "configuration" when its image, a network or its flavor does not exist. */
async function need(parts: Parts, label: LabelConfig<OpenstackLabelOwn>, signal: AbortSignal) {
  const { config, cloud, lookups } = parts;
  const { cloudImage, networks: own } = label.own;
  if (cloudImage !== null) await lookups.cloudImage(cloudImage, signal);
  const networks = await lookups.networksNamed(networksFor(own, cloud.networks), signal);
  // By identity, because several pools may have a label of that name.
  const pool = config.pools.find((pool) => launchedLabels(pool).includes(label));
  const floats = cloud.floatingIps && pool?.own.autoFloatingIp === true;
  const names = networks.map(({ name }) => name);
  const network = networkNeed(names, floats ? await reachOf(parts, signal) : null);
  return needOf(await lookups.flavor(label, signal), label, network);
}

/**
 * Cores and RAM of a server. Flavors are inline since microversion 2.47; before, or for deleted flavors, only if the flavor is
 * known. Otherwise they count as 0, so the quota seems freer than it is, and nova's refusal decides.
 */
async function amountsOf({ lookups }: Parts, { flavor }: Server, signal: AbortSignal): Promise<Resources> {
  const isInline = flavor.vcpus !== undefined || flavor.id === undefined;
  const known = isInline ? flavor : (await lookups.flavors(signal)).find(({ id }) => id === flavor.id);
  return { instances: 1, cores: known?.vcpus ?? 0, ram: known?.ram ?? 0 };
}
