import { type Metadata, machineMetadata, noImage, orThrow } from "@nodeyard/driver";
import { z } from "zod";
import type { LxdClient } from "./client.ts";
import type { LxdOrder } from "./config.ts";

const KEYS = z.record(z.string(), z.string()).default({});
const DEVICES = z.record(z.string(), KEYS).default({});
const ADDRESS = z.object({ family: z.string(), address: z.string(), scope: z.string() });
const INTERFACE = z.object({ addresses: z.array(ADDRESS).nullish(), hwaddr: z.string() });

const SERVER = z.object({
  /** The id is newer than 5.0, and shown to clients that may see the configuration. It is of the whole cluster, and never changes. */
  config: z.object({ "volatile.uuid": z.string().optional() }).nullish(),
  /** Not shown to clients that it does not trust. */
  environment: z
    .object({
      /** Of its certificate, in hexadecimal; members of a cluster have one in common. */
      certificate_fingerprint: z.string(),
      server_clustered: z.boolean(),
      server_name: z.string(),
      architectures: z.array(z.string()).min(1),
    })
    .optional(),
});
/** What a server says of itself. */
export type Server = NonNullable<z.infer<typeof SERVER>["environment"]>;

/** Rejects with "access" where the server does not trust this client. */
export async function serverOf(client: LxdClient, signal: AbortSignal) {
  const { config, environment } = await client.get(SERVER, "", signal);
  const why = "the server does not trust this client; see lxc config trust add";
  return { keys: config, environment: orThrow(environment, why, "access") };
}

/** An instance as the server describes it. `state` is read with a single instance only. */
export const INSTANCE = z.object({
  name: z.string(),
  /** Running, Stopped, Frozen, Error; newer servers say Ready once the guest has said so. */
  status: z.string(),
  type: z.string(),
  /** Member of the cluster; "none" without one. */
  location: z.string(),
  last_used_at: z.string(),
  /** Null on a member of a cluster that is away: of such an instance only the name is told, and that it is "Error". */
  config: KEYS.or(z.null().transform(() => ({}))),
  /** With the keys of the profiles. */
  expanded_config: KEYS,
  expanded_devices: DEVICES,
  state: z.object({ network: z.record(z.string(), INTERFACE).nullish() }).nullish(),
});
export type Instance = z.infer<typeof INSTANCE>;

/** Metadata become keys of users, and are read back without the prefix. */
const USER = "user.";
export const metadataOf = ({ config }: Instance): Metadata => {
  const own = Object.entries(config).filter(([key]) => key.startsWith(USER));
  return Object.fromEntries(own.map(([key, value]) => [key.slice(USER.length), value]));
};

/** A machine that ran, and does not any more. One that is being made is stopped as well, but was never used: its time is the epoch. */
export const hasEnded = ({ status, last_used_at }: Instance) =>
  status === "Error" || (status === "Stopped" && Date.parse(last_used_at) > 0);

/** A fingerprint, or enough of its beginning. */
const FINGERPRINT = /^[0-9a-f]{12,64}$/;

/** What an instance is made from, as the API names it. `pem`: the text of a certificate's file. */
export function sourceOf({ label, imageExternalId }: LxdOrder, pem: (path: string) => string): object {
  if (typeof imageExternalId === "string") return { type: "image", fingerprint: imageExternalId };
  const { image } = label.own;
  if (image === null) throw noImage(label);
  if (image.copyOf !== null) return { type: "copy", source: image.copyOf, instance_only: true };
  const { image: name, remote, remoteProtocol: protocol, remoteCertificate } = image;
  const named = FINGERPRINT.test(name ?? "") ? { fingerprint: name } : { alias: name };
  if (remote === null) return { type: "image", ...named };
  const certificate = remoteCertificate === null ? {} : { certificate: pem(remoteCertificate) };
  return { type: "image", mode: "pull", server: remote, protocol, ...certificate, ...named };
}

/** The body of `POST /1.0/instances`. */
export function instanceBody({ tag, label }: LxdOrder, name: string, source: object): object {
  const { type, profiles, devices, config, cores, ram, userData } = label.own;
  const tags = Object.entries(machineMetadata(tag)).map(([key, value]) => [`${USER}${key}`, value]);
  const limits = { "limits.cpu": String(cores), "limits.memory": `${ram}MiB` };
  const seed = userData !== null && { "cloud-init.user-data": userData };
  const keys = { ...config, ...limits, ...seed, ...Object.fromEntries(tags) };
  return { ...{ name, type, profiles, devices, source }, config: keys };
}

/**
 * The addresses of an instance's own interfaces, IPv4 first: what runs inside may have made others, such as a bridge for containers. Own
 * ones have the hardware address that the server gave them.
 */
export function addressesOf({ expanded_config, expanded_devices, state }: Instance) {
  const given = Object.entries(expanded_config).filter(([key]) => /^volatile\..*\.hwaddr$/.test(key));
  const fixed = Object.values(expanded_devices).map((device) => device.hwaddr);
  const own = new Set([...fixed, ...given.map(([, value]) => value)]);
  const interfaces = Object.values(state?.network ?? {}).filter(({ hwaddr }) => own.has(hwaddr));
  const all = interfaces.flatMap(({ addresses }) => addresses ?? []);
  const of = (wanted: string) => all.find((one) => one.family === wanted && one.scope === "global")?.address;
  return { ipv4: of("inet") ?? null, ipv6: of("inet6") ?? null };
}

/** Whether an instance runs, and has IPv4 if it has an interface: bridges give an IPv6 address first, to which few launchers have a route. */
export function isUp(instance: Instance): boolean {
  if (instance.status !== "Running" && instance.status !== "Ready") return false;
  const { ipv4 } = addressesOf(instance);
  const hasInterface = Object.values(instance.expanded_devices).some(({ type }) => type === "nic");
  return !hasInterface || ipv4 !== null;
}
