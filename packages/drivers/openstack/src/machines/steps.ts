import { CALL_MS, DriverError, type MachineWork, type MakeCall, noImage, wasRefused } from "@nodeyard/driver";
import type { Server } from "../api/index.ts";
import type { OpenstackOrder } from "../config.ts";
import type { Parts } from "../parts.ts";
import {
  addressesOf,
  natDestinationOf,
  networksFor,
  poolOfFloatingIps,
  type Reach,
  wantsFloatingIp,
} from "./addresses.ts";
import { serverBody } from "./server-body.ts";
import { createCall, idOf } from "./servers.ts";

/** Beside the kit's steps a launch has floating-ip (only if wanted), and a removal begins with it (if the pool may have one). */
export function serverWork(parts: Parts): MachineWork<Server, undefined> {
  const { servers, cloud, config, floatingIps, evidence } = parts;
  return {
    machines: servers,
    make: (order: OpenstackOrder, _, signal) => serverCall(parts, order, signal),
    async *expose({ tag, pool }: OpenstackOrder, server, signal) {
      // Volumes carry no tag, and their owner is known only while they are attached. A floating IP may fail, so this comes first.
      for (const { id } of server["os-extended-volumes:volumes_attached"]) evidence.record("volume", id, tag);
      // Whether a floating IP is needed shows only now: nova may have chosen the network.
      const reach = await reachOf(parts, signal);
      const { autoFloatingIp } = pool.own;
      if (!autoFloatingIp || !cloud.floatingIps || !wantsFloatingIp(server, reach)) return null;
      yield { step: "floating-ip", deadlineMs: CALL_MS };
      const target = { pool: poolOfFloatingIps(reach)!, target: natDestinationOf(reach) };
      return floatingIps.ensure(tag, server.id, target, signal);
    },
    /** Facts of a server for the node's record (docs/contract/records.md, "Node"). */
    async describe(_, server, address, signal) {
      return {
        ...{ hostname: server.name, cloud: cloud.name, region: config.own.region },
        ...addressesOf(server, await reachOf(parts, signal), address),
        az: server["OS-EXT-AZ:availability_zone"] ?? null,
        hostId: server.hostId ?? null,
      };
    },
    async *first(tag, _, { signal }) {
      const pool = config.pools.find(({ name }) => name === tag.pool);
      // If the pool used them only before a reload of the configuration, the leak sweep finds the mark.
      if (!cloud.floatingIps || pool?.own.autoFloatingIp === false) return;
      yield { step: "floating-ip", deadlineMs: CALL_MS };
      await floatingIps.removeOf(tag, signal);
    },
  };
}

/** The facts by which addresses are classified. */
export async function reachOf({ cloud, ipv6, lookups }: Parts, signal: AbortSignal): Promise<Reach> {
  const { networks: hints, private: isPrivate, forceIpv4 } = cloud;
  return { networks: await lookups.networks(signal), hints, private: isPrivate, forceIpv4, ipv6 };
}

/** The call that creates the server. It rejects with a transient error when cached ids may be out of date: the next attempt looks them up. */
async function serverCall(parts: Parts, order: OpenstackOrder, signal: AbortSignal): Promise<MakeCall> {
  const { lookups, api, log } = parts;
  const label = order.label;
  const [{ id: flavorId }, imageId, networks, microversion] = await Promise.all([
    lookups.flavor(label, signal),
    imageOf(parts, order, signal),
    lookups.networksNamed(networksFor(label.own.networks, parts.cloud.networks), signal),
    api.nova.microversion(signal),
  ]);
  const networkIds = networks.map(({ id }) => id);
  const body = serverBody(order, { flavorId, imageId, networkIds, microversion }, log);
  const create = createCall(parts, order.tag, body);
  return async (until) => {
    try {
      return await create(until);
    } catch (error) {
      if (!wasRefused(error, 400)) throw error;
      // A flavor, image, network or zone may have been replaced. Only fresh data shows whether it exists again.
      lookups.forget();
      // The ids of a second attempt were fresh, so the refusal is final.
      if (order.attempt > 1) throw error;
      throw new DriverError("transient", `${parts.config.name}: ${error.message}`, { cause: error });
    }
  };
}

/** The id of the image to boot: an uploaded one, else the cloud's. */
async function imageOf({ lookups }: Parts, { label, imageExternalId }: OpenstackOrder, signal: AbortSignal) {
  const uploaded = idOf(imageExternalId);
  if (uploaded !== undefined) return uploaded;
  const { cloudImage } = label.own;
  if (cloudImage === null) throw noImage(label);
  return lookups.cloudImage(cloudImage, signal);
}
