import {
  type CreateOrder,
  DriverError,
  type LabelConfig,
  type Machine,
  type Step,
  type StepContext,
  type Tag,
} from "@nodeyard/driver";
import type { Server } from "../api/compute.ts";
import { ApiError } from "../client/index.ts";
import type { OpenstackLabelOwn, OpenstackPoolOwn } from "../config.ts";
import {
  addressesOf,
  natDestinationOf,
  networksFor,
  poolOfFloatingIps,
  type Reach,
  wantsFloatingIp,
} from "./addresses.ts";
import type { Parts } from "./parts.ts";
import { serverBody } from "./server-body.ts";
import { idOf } from "./servers.ts";

/** Milliseconds for one call, with its wait for the rate limit. */
const CALL_MS = 120_000;
/** Milliseconds for nova to delete a server. */
const GONE_MS = 600_000;

/**
 * Creates the machine of an order; see `Provider.create`. Steps: find, discard (only a server in ERROR), server, wait,
 * floating-ip (only if wanted). A continued launch finds its server by id or tag and goes on with the wait.
 */
export async function* createMachine(
  parts: Parts,
  order: CreateOrder,
  { signal, externalId }: StepContext,
): AsyncGenerator<Step, Machine, void> {
  const { servers, config } = parts;
  const place = `${config.name}: node ${order.tag.nodeId}`;
  yield { step: "find", deadlineMs: CALL_MS };
  let server = await servers.existing(order.tag, externalId, signal);
  // A server in ERROR never becomes active. It is deleted first, because one tag must not have two servers.
  if (server?.status === "ERROR") {
    yield { step: "discard", deadlineMs: GONE_MS };
    await servers.delete(server.id, signal);
    await servers.gone(server.id, place, signal, server);
    server = undefined;
  }
  let id = server?.id;
  if (id === undefined) {
    yield { step: "server", deadlineMs: CALL_MS };
    id = await makeServer(parts, order, signal);
  }
  // The id is saved with the yield of "wait". A launcher that dies before that finds the server by its tag.
  const saved = idOf(externalId) === id ? {} : { save: { externalId: id } };
  yield { step: "wait", deadlineMs: config.launchTimeoutMs, ...saved };
  const active = await servers.active(id, place, signal);

  // Whether a floating IP is needed shows only now: nova may have chosen the network.
  const reach = await reachOf(parts, signal);
  let floatingIp: string | null = null;
  const { autoFloatingIp } = order.pool.own as OpenstackPoolOwn;
  if (autoFloatingIp && parts.cloud.floatingIps && wantsFloatingIp(active, reach)) {
    yield { step: "floating-ip", deadlineMs: CALL_MS };
    const pool = poolOfFloatingIps(reach)!;
    floatingIp = await parts.floatingIps.ensure(
      order.tag,
      id,
      { pool, target: natDestinationOf(reach) },
      signal,
    );
  }
  return describeMachine(parts, active, addressesOf(active, reach, floatingIp));
}

/**
 * Deletes the machine of a tag; see `Provider.remove`. Steps: find, floating-ip (if the pool may have one), delete and gone (if
 * there is a server). A call that is repeated starts from the top.
 */
export async function* removeMachine(
  parts: Parts,
  tag: Tag,
  { signal, externalId }: StepContext,
): AsyncGenerator<Step, void, void> {
  const { servers, config, cloud, floatingIps } = parts;
  yield { step: "find", deadlineMs: CALL_MS };
  const server = await servers.existing(tag, externalId, signal);
  if (cloud.floatingIps && mayHaveFloatingIp(parts, tag)) {
    yield { step: "floating-ip", deadlineMs: CALL_MS };
    await floatingIps.removeOf(tag, signal);
  }
  if (server !== undefined) {
    yield { step: "delete", deadlineMs: CALL_MS };
    await servers.delete(server.id, signal);
    yield { step: "gone", deadlineMs: GONE_MS };
    await servers.gone(server.id, `${config.name}: node ${tag.nodeId}`, signal, server);
  }
  servers.forget(tag);
}

/** Whether to look for floating IPs. If the pool used them only before a reload of the configuration, the leak sweep finds the mark. */
function mayHaveFloatingIp({ config }: Parts, tag: Tag): boolean {
  const pool = config.pools.find(({ name }) => name === tag.pool);
  return pool === undefined || (pool.own as OpenstackPoolOwn).autoFloatingIp;
}

/** The facts by which addresses are classified. */
export async function reachOf(
  parts: Pick<Parts, "cloud" | "ipv6" | "lookups">,
  signal: AbortSignal,
): Promise<Reach> {
  const { cloud, ipv6, lookups } = parts;
  const { networks: hints, forceIpv4 } = cloud;
  return { networks: await lookups.networks(signal), hints, private: cloud.private, forceIpv4, ipv6 };
}

/** Creates the server. Rejects with a transient error when cached ids may be out of date, so that the next attempt looks them up again. */
async function makeServer(parts: Parts, order: CreateOrder, signal: AbortSignal): Promise<string> {
  const { lookups, nova, log } = parts;
  const label = order.label as LabelConfig<OpenstackLabelOwn>;
  const [flavor, imageId, networkIds, microversion] = await Promise.all([
    lookups.flavor(label, signal),
    imageOf(parts, order, label, signal),
    lookups.networkIds(networksFor(label.own.networks, parts.cloud.networks), signal),
    nova.microversion(signal),
  ]);
  const body = serverBody(order, { flavorId: flavor.id, imageId, networkIds, microversion }, log);
  try {
    return await parts.servers.create(order.tag, body, signal);
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 400)) throw error;
    // A flavor, image, network or zone may have been replaced. Only fresh data shows whether it exists again.
    lookups.forget();
    // The ids of a second attempt were fresh, so the refusal is final.
    if (order.attempt > 1) throw error;
    throw new DriverError("transient", `${parts.config.name}: ${error.message}`, { cause: error });
  }
}

/** The id of the image to boot: an uploaded one, else the cloud's. */
async function imageOf(
  parts: Parts,
  order: CreateOrder,
  label: LabelConfig<OpenstackLabelOwn>,
  signal: AbortSignal,
): Promise<string> {
  const uploaded = idOf(order.imageExternalId);
  if (uploaded !== undefined) return uploaded;
  const { cloudImage } = label.own;
  if (cloudImage !== null) return parts.lookups.cloudImage(cloudImage, signal);
  throw new DriverError(
    "configuration",
    `label ${label.name} has no image here: no upload of ${label.image?.name ?? "any image"} is ready`,
  );
}

/** Facts of a server for the node's record (docs/contract/records.md, "Node"). */
function describeMachine(parts: Parts, server: Server, addresses: ReturnType<typeof addressesOf>): Machine {
  const { cloud, config } = parts;
  return {
    externalId: server.id,
    ...addresses,
    hostname: server.name,
    cloud: cloud.name,
    region: config.own.region,
    az: server["OS-EXT-AZ:availability_zone"] ?? null,
    hostId: server.hostId ?? null,
  };
}
