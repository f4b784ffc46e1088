import { z } from "zod";
import type { Kind } from "./objects.ts";

/** The kinds of objects that the driver knows, with what it reads of them. All other fields may change. */

const ID = z.object({ id: z.string().min(1) });

/** `version`: 4 or 6. */
const address = z.object({ addr: z.string(), version: z.number(), "OS-EXT-IPS:type": z.string().optional() });

/** A server (Compute API, "Show Server Details"). For a cell that is down nova sends only id and status. */
export const serverSchema = z.object({
  id: z.string(),
  name: z.string().default(""),
  /** "BUILD", "ACTIVE", "ERROR", "DELETED", ... (Compute API guide, "Server Concepts"). */
  status: z.string(),
  /** Time of the last change by the cloud's clock, ISO 8601. */
  updated: z.string().nullish(),
  /** A hash of host and project; empty until the server has a host. */
  hostId: z.string().nullish(),
  metadata: z.record(z.string(), z.string()).default({}),
  /** By name of the network, not by id. */
  addresses: z.record(z.string(), z.array(address)).default({}),
  /** Inline since microversion 2.47, then without an id; before only the id. */
  flavor: z
    .object({ id: z.string().optional(), vcpus: z.number().optional(), ram: z.number().optional() })
    .default({}),
  /** Set for servers in ERROR. Listings contain it for one cell only (`withFault`). */
  fault: z.object({ code: z.number().optional(), message: z.string().default("") }).nullish(),
  "OS-EXT-AZ:availability_zone": z.string().nullish(),
  /** What nova is doing with the server ("spawning", "deleting"); null when it does nothing. */
  "OS-EXT-STS:task_state": z.string().nullish(),
  "os-extended-volumes:volumes_attached": z.array(z.object({ id: z.string() })).default([]),
});
export type Server = z.infer<typeof serverSchema>;
export const SERVERS = {
  ...({ path: "/servers", details: "/detail", one: "server" } as const),
  ...{ schema: serverSchema, made: ID },
} satisfies Kind<typeof serverSchema, typeof ID>;

/** A flavor. `ram`: MiB. */
const flavorSchema = z.object({ id: z.string(), name: z.string(), ram: z.number(), vcpus: z.number() });
export type Flavor = z.infer<typeof flavorSchema>;
export const FLAVORS = { path: "/flavors", details: "/detail", schema: flavorSchema } as const;

const networkSchema = z.object({
  id: z.string(),
  name: z.string(),
  project_id: z.string().optional(),
  /** Floating IPs come from it. */
  "router:external": z.boolean().default(false),
  /** Other projects may use it. */
  shared: z.boolean().optional(),
});
export type Network = z.infer<typeof networkSchema>;
export const NETWORKS = { path: "/networks", schema: networkSchema } as const;

const portSchema = z.object({
  id: z.string(),
  /** "ACTIVE", "DOWN" (nothing is plugged in), "BUILD", "ERROR". */
  status: z.string(),
  /** Id of the server or router; it stays when a server was deleted without its port. */
  device_id: z.string().nullish(),
  /** Who made the port: "compute:ZONE" for nova, "network:router_interface", ... */
  device_owner: z.string().nullish(),
  network_id: z.string(),
  fixed_ips: z.array(z.object({ ip_address: z.string() })).default([]),
});
export type Port = z.infer<typeof portSchema>;
export const PORTS = { path: "/ports", owner: "project_id", schema: portSchema } as const;

const floatingIpSchema = z.object({
  id: z.string(),
  floating_ip_address: z.string(),
  /** The port that it is attached to; null when it is free, also after its server was deleted. */
  port_id: z.string().nullish(),
  /** The node's mark (`markOf`), or any text of others. */
  description: z.string().nullish(),
});
export type FloatingIp = z.infer<typeof floatingIpSchema>;
export const FLOATING_IPS = {
  ...({ path: "/floatingips", one: "floatingip", owner: "project_id" } as const),
  schema: floatingIpSchema,
};

const volumeSchema = z.object({
  id: z.string(),
  /** "available" (attached to nothing), "in-use", "error", "deleting", ... (Block Storage API v3, "Volumes"). */
  status: z.string(),
  /** GB. */
  size: z.number(),
  /** The servers that have it. Empty once nova detached it, also when the server is gone. */
  attachments: z.array(z.object({ server_id: z.string() })).default([]),
});
export type Volume = z.infer<typeof volumeSchema>;
export const VOLUMES = { path: "/volumes", details: "/detail", schema: volumeSchema } as const;

/** Custom properties are on the same level as the standard ones (Image API v2), so unknown fields are kept. */
const imageSchema = z.looseObject({
  id: z.string(),
  name: z.string().nullish(),
  /** "queued" (no data yet), "saving", "active", "killed", ... (Image API v2, "Image statuses"). */
  status: z.string(),
  /** Bytes; null until the data is complete. The same goes for the checksums. */
  size: z.number().nullish(),
  /** MD5, in hexadecimal digits. */
  checksum: z.string().nullish(),
  /** Algorithm of `os_hash_value`, which the cloud chooses: "sha512" by default. */
  os_hash_algo: z.string().nullish(),
  os_hash_value: z.string().nullish(),
});
/** An image, with its properties as further fields. */
export type Image = z.infer<typeof imageSchema>;
export const IMAGES = { path: "/images", owner: "owner", schema: imageSchema } as const;
