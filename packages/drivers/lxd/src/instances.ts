import { createHash } from "node:crypto";
import { type CreateOrder, type Metadata, machineMetadata, type Resources, type Tag } from "@nodeyard/driver";
import { z } from "zod";
import { amountsOf } from "./amounts.ts";
import type { LxdLabelOwn } from "./config.ts";

const KEYS = z.record(z.string(), z.string()).default({});
const DEVICES = z.record(z.string(), KEYS).default({});
const ADDRESS = z.object({ family: z.string(), address: z.string(), scope: z.string() });
const INTERFACE = z.object({ addresses: z.array(ADDRESS).nullish(), hwaddr: z.string() });

export const SERVER = z.object({
  auth: z.string(),
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
/** What a server says of itself to clients that it trusts. */
export type Server = NonNullable<z.infer<typeof SERVER>["environment"]>;

/** An instance as the server describes it. `state` is read with a single instance only. */
export const INSTANCE = z.object({
  name: z.string(),
  /** Running, Stopped, Frozen, Error. */
  status: z.string(),
  type: z.string(),
  /** Member of the cluster; "none" without one. */
  location: z.string(),
  last_used_at: z.string(),
  config: KEYS,
  /** With the keys of the profiles. */
  expanded_config: KEYS,
  expanded_devices: DEVICES,
  state: z.object({ network: z.record(z.string(), INTERFACE).nullish() }).nullish(),
});
export type Instance = z.infer<typeof INSTANCE>;
export const PROFILE = z.object({ config: KEYS, devices: DEVICES });

/** Metadata become keys of users, and are read back without the prefix. */
const USER = "user.";
export const metadataOf = ({ config }: Pick<Instance, "config">): Metadata =>
  Object.fromEntries(
    Object.entries(config).flatMap(([key, value]) =>
      key.startsWith(USER) ? [[key.slice(USER.length), value]] : [],
    ),
  );

/** A machine that ran, and does not any more. One that is being made is stopped as well, but was never used: its time is the epoch. */
export const hasEnded = ({ status, last_used_at }: Instance) =>
  status === "Error" || (status === "Stopped" && Date.parse(last_used_at) > 0);

/** The keys that a label gives its instances. */
export const labelKeys = ({ cores, ram, config, userData }: LxdLabelOwn): Record<string, string> => ({
  ...config,
  ...(cores !== null && { "limits.cpu": String(cores) }),
  ...(ram !== null && { "limits.memory": `${ram}MiB` }),
  ...(userData !== null && { "cloud-init.user-data": userData }),
});

/** The body of `POST /1.0/instances`. */
export function instanceBody({ tag, label }: CreateOrder, name: string, source: object): object {
  const own = label.own as LxdLabelOwn;
  const tags = Object.entries(machineMetadata(tag)).map(([key, value]) => [`${USER}${key}`, value]);
  return {
    name,
    type: own.type,
    profiles: own.profiles,
    config: { ...labelKeys(own), ...Object.fromEntries(tags) },
    devices: own.devices,
    source,
  };
}

export const amountsOfInstance = ({ type, expanded_config, expanded_devices }: Instance): Resources =>
  amountsOf(type, expanded_config, expanded_devices);

/**
 * The addresses of an instance's own interfaces, IPv4 first: what runs inside may have made others, such as a bridge for containers. Own
 * ones have the hardware address that the server gave them.
 */
export function addressesOf({ expanded_config, expanded_devices, state }: Instance) {
  const given = Object.entries(expanded_config).flatMap(([key, value]) =>
    /^volatile\..*\.hwaddr$/.test(key) ? [value] : [],
  );
  const own = new Set([...given, ...Object.values(expanded_devices).map(({ hwaddr }) => hwaddr)]);
  const all = Object.values(state?.network ?? {}).flatMap(({ hwaddr, addresses }) =>
    own.has(hwaddr) ? (addresses ?? []) : [],
  );
  const of = (wanted: string) =>
    all.find(({ family, scope }) => family === wanted && scope === "global")?.address ?? null;
  return { ipv4: of("inet"), ipv6: of("inet6") };
}

/** Whether an instance runs, and has an address if it has an interface. */
export function isUp(instance: Instance): boolean {
  if (instance.status !== "Running") return false;
  const { ipv4, ipv6 } = addressesOf(instance);
  const hasInterface = Object.values(instance.expanded_devices).some(({ type }) => type === "nic");
  return !hasInterface || ipv4 !== null || ipv6 !== null;
}

/** A name that follows from the tag, so that a second call makes no second instance. It is the machine's host name, too. */
export function nameOf({ installation, provider, nodeId }: Tag): string {
  const owner = createHash("sha256")
    .update(JSON.stringify([installation, provider]))
    .digest("hex");
  return `np${nodeId}-${owner.slice(0, 10)}`;
}
