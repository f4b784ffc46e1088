import {
  type Evidence,
  imageTagOf,
  type Resource,
  type Resources,
  sameNode,
  type Tag,
  tagOf,
} from "@nodeyard/driver";
import type { Server } from "../api/compute.ts";
import type { Image } from "../api/image.ts";
import type { FloatingIp, Port } from "../api/network.ts";
import type { Volume } from "../api/volume.ts";
import { tagOfMark } from "../tags.ts";

/** All resources of the project, as listed by the services. */
export interface Inventory {
  readonly servers: readonly Server[];
  readonly ports: readonly Port[];
  readonly floatingIps: readonly FloatingIp[];
  readonly volumes: readonly Volume[];
  readonly images: readonly Image[];
}

/** What the judgement of a resource needs besides the lists. */
export interface Rules {
  readonly evidence: Evidence;
  /** Cores and RAM of a server. */
  readonly amounts: (server: Server) => Resources;
  /** Whether ports of deleted servers may be reported with a tag of Nodeyard. */
  readonly ports: boolean;
}

/**
 * The resources, with the tag of their node when there is evidence for it. Parts of an existing server are left out, because they
 * are deleted with it. A resource without evidence has no tag, so it is never deleted (rule 5).
 *
 * The lists are from different moments. A part whose server came after the list of servers must not look like a leak, which is
 * why the caller lists servers last. The launcher's sweep decides by the tag whether the node still exists.
 */
export function resourcesOf(all: Inventory, rules: Rules): readonly Resource[] {
  const servers = new Map(all.servers.map((server) => [server.id, server]));
  const portsOf = Map.groupBy(all.ports, ({ device_id: device }) => device ?? "");
  return [
    ...all.servers.map((server) => instance(server, portsOf.get(server.id) ?? [], all, rules)),
    ...all.ports.flatMap((port) => portResource(port, servers, rules)),
    ...all.floatingIps.flatMap((ip) => floatingIpResource(ip, servers, all.ports)),
    ...all.volumes.flatMap((volume) => volumeResource(volume, servers, rules)),
    ...all.images.flatMap(imageResource),
  ];
}

/** A server with its use of all quotas: its volumes, ports and floating IPs count here, so that none counts twice. */
function instance(server: Server, ports: readonly Port[], all: Inventory, rules: Rules): Resource {
  const attached = all.volumes.filter(({ attachments }) =>
    attachments.some(({ server_id }) => server_id === server.id),
  );
  const volumes =
    attached.length === 0
      ? {}
      : { volumes: attached.length, "volume-gb": attached.reduce((sum, { size }) => sum + size, 0) };
  const own = new Set(ports.map(({ id }) => id));
  const floating = all.floatingIps.filter(({ port_id: port }) => port && own.has(port)).length;
  const network = {
    ...(own.size > 0 && { ports: own.size }),
    ...(floating > 0 && { "floating-ips": floating }),
  };
  return {
    type: "instance",
    id: server.id,
    tag: tagOf(server.metadata),
    resources: { ...rules.amounts(server), ...volumes, ...network },
  };
}

/** Evidence: the port names a deleted server that Nodeyard made. Ports of routers and of others only count for the quota. */
function portResource(port: Port, servers: ReadonlyMap<string, Server>, rules: Rules): readonly Resource[] {
  const { device_id: device, device_owner: owner } = port;
  if (device && servers.has(device)) return [];
  // DOWN: no host has the port plugged in.
  const orphan = device && owner?.startsWith("compute:") && port.status === "DOWN" && rules.ports;
  const tag = orphan ? rules.evidence.tagOf("instance", device) : null;
  return [{ type: "port", id: port.id, tag, resources: { ports: 1 } }];
}

/** Evidence: the mark in `description`, which is set when the floating IP is made. */
function floatingIpResource(
  ip: FloatingIp,
  servers: ReadonlyMap<string, Server>,
  ports: readonly Port[],
): readonly Resource[] {
  const mark = tagOfMark(ip.description);
  const device = ports.find(({ id }) => id === ip.port_id)?.device_id;
  const server = device ? servers.get(device) : undefined;
  if (mark !== null && server !== undefined && sameNode(tagOf(server.metadata), mark)) return [];
  // Still attached to a port of another party, so it must not be deleted, even with a mark.
  const tag = ip.port_id ? null : mark;
  // A floating IP on a server counts with the server.
  const resources: Resources = server === undefined ? { "floating-ips": 1 } : {};
  return [{ type: "floatingip", id: ip.id, tag, resources }];
}

/** Evidence: recorded while the volume was attached to a server of Nodeyard. */
function volumeResource(
  volume: Volume,
  servers: ReadonlyMap<string, Server>,
  rules: Rules,
): readonly Resource[] {
  if (volume.attachments.some(({ server_id }) => servers.has(server_id))) return [];
  // Only an idle volume can be deleted, and one in another state may be used by a client of the cloud.
  const free = volume.attachments.length === 0 && ["available", "error"].includes(volume.status);
  const tag: Tag | null = free ? rules.evidence.tagOf("volume", volume.id) : null;
  return [{ type: "volume", id: volume.id, tag, resources: { volumes: 1, "volume-gb": volume.size } }];
}

/** Evidence: the properties set by the upload. Images of others are left out. */
function imageResource(image: Image): readonly Resource[] {
  const tag = imageTagOf(image);
  return tag === null ? [] : [{ type: "image", id: image.id, tag: null, imageTag: tag, resources: {} }];
}
