import { type CloudPart, type Evidence, type FoundPart, imageTagOf } from "@nodeyard/driver";
import type { FloatingIp, Image, Port, Volume } from "./api/index.ts";
import type { Parts } from "./parts.ts";
import { tagOfMark } from "./tags.ts";

/** What stands beside servers. Lists are of the project, though an administrator would see all projects. */
export function besideServers({ api, evidence, config }: Parts): Readonly<Record<string, CloudPart>> {
  const { ports, floatingIps, volumes, images, cinder } = api;
  return {
    port: {
      list: async (signal) =>
        (await ports.own(signal)).map((port) => portPart(port, evidence, config.own.portCleanup)),
      delete: (id, signal) => ports.delete(id, signal),
    },
    floatingip: {
      list: async (signal) => (await floatingIps.own(signal)).map(floatingIpPart),
      delete: (id, signal) => floatingIps.delete(id, signal),
    },
    volume: {
      // A cloud without cinder has no volumes.
      list: async (signal) =>
        ((await cinder.exists(signal)) ? await volumes.list(signal) : []).map((one) =>
          volumePart(one, evidence),
        ),
      delete: (id, signal) => volumes.delete(id, signal),
    },
    image: {
      list: async (signal) =>
        (await images.own(signal, { nodepool_provider_name: config.name })).flatMap(imagePart),
      delete: (id, signal) => images.delete(id, signal),
    },
  };
}

/** Evidence: the port names a deleted server that Nodeyard made. Ports of routers and of others only count for the quota. */
export function portPart(port: Port, evidence: Evidence, isCleaned: boolean): FoundPart {
  const { id, device_id: device, device_owner: owner } = port;
  // DOWN: no host has the port plugged in.
  const orphan = device && owner?.startsWith("compute:") && port.status === "DOWN" && isCleaned;
  return {
    id,
    on: [device],
    tag: orphan ? evidence.tagOf("instance", device) : null,
    resources: { ports: 1 },
  };
}

/** Evidence: the mark in `description`, which is set when the floating IP is made. */
export function floatingIpPart({ id, port_id: port, description }: FloatingIp): FoundPart {
  // Attached to a port of another party it must not be deleted, even with a mark.
  const tag = port ? null : tagOfMark(description);
  return { id, on: [port], tag, resources: { "floating-ips": 1 } };
}

/** Evidence: recorded while the volume was attached to a server of Nodeyard. */
export function volumePart({ id, attachments, status, size }: Volume, evidence: Evidence): FoundPart {
  // Only an idle volume can be deleted, and one in another state may be used by a client of the cloud.
  const free = attachments.length === 0 && ["available", "error"].includes(status);
  return {
    id,
    on: attachments.map(({ server_id }) => server_id),
    tag: free ? evidence.tagOf("volume", id) : null,
    resources: { volumes: 1, "volume-gb": size },
  };
}

/** Evidence: the properties set by the upload. Images of others are left out. */
export function imagePart(image: Image): readonly FoundPart[] {
  const imageTag = imageTagOf(image);
  return imageTag === null ? [] : [{ id: image.id, tag: null, imageTag }];
}
