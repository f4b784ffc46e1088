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

/** Everything of the project, listed by services of their own. */
export interface Inventory {
  readonly servers: readonly Server[];
  readonly ports: readonly Port[];
  readonly floatingIps: readonly FloatingIp[];
  readonly volumes: readonly Volume[];
  readonly images: readonly Image[];
}

export interface Rules {
  readonly evidence: Evidence;
  /** Cores and RAM of a server. */
  readonly amounts: (server: Server) => Resources;
  /** Ports of servers that are gone may be told as ours. */
  readonly ports: boolean;
}

/**
 * What there is, with the tag of its node where there is evidence. What belongs to a server that is there is left out: it goes
 * with its server. Everything without evidence has no tag, so nobody ever deletes it.
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

/** Evidence: the port names a server that we made, and that is gone. Routers' and others' ports only take of the quota. */
function portResource(port: Port, servers: ReadonlyMap<string, Server>, rules: Rules): readonly Resource[] {
  const { device_id: device, device_owner: owner } = port;
  if (device && servers.has(device)) return [];
  const orphan = device && owner?.startsWith("compute:") && port.status === "DOWN" && rules.ports;
  const tag = orphan ? rules.evidence.tagOf("instance", device) : null;
  return [{ type: "port", id: port.id, tag, resources: { ports: 1 } }];
}

/** Evidence: our mark in `description`, set when it was made. */
function floatingIpResource(
  ip: FloatingIp,
  servers: ReadonlyMap<string, Server>,
  ports: readonly Port[],
): readonly Resource[] {
  const mark = tagOfMark(ip.description);
  const device = ports.find(({ id }) => id === ip.port_id)?.device_id;
  const server = device ? servers.get(device) : undefined;
  if (mark !== null && server !== undefined && sameNode(tagOf(server.metadata), mark)) return [];
  // Still on somebody's port: not ours to take away, whatever its mark says.
  const tag = ip.port_id ? null : mark;
  // What is on a server counts with the server.
  const resources: Resources = server === undefined ? { "floating-ips": 1 } : {};
  return [{ type: "floatingip", id: ip.id, tag, resources }];
}

/** Evidence: recorded while it was attached to a server of ours. */
function volumeResource(
  volume: Volume,
  servers: ReadonlyMap<string, Server>,
  rules: Rules,
): readonly Resource[] {
  if (volume.attachments.some(({ server_id }) => servers.has(server_id))) return [];
  const free = volume.attachments.length === 0 && ["available", "error"].includes(volume.status);
  const tag: Tag | null = free ? rules.evidence.tagOf("volume", volume.id) : null;
  return [{ type: "volume", id: volume.id, tag, resources: { volumes: 1, "volume-gb": volume.size } }];
}

/** Evidence: the properties that we gave it. Others' images are nobody's business here. */
function imageResource(image: Image): readonly Resource[] {
  const tag = imageTagOf(image);
  return tag === null ? [] : [{ type: "image", id: image.id, tag: null, imageTag: tag, resources: {} }];
}
