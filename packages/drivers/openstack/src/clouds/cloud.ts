import { CloudConfigError } from "@nodeyard/driver";
import type { Credential, ServiceLocation, ServiceName } from "../client/index.ts";
import { type CloudConfigPaths, flag, isMapping, type Mapping, text } from "./files.ts";

/** An entry of `networks` in clouds.yaml (openstacksdk manual, "Network config"). */
export interface NetworkHint {
  /** Name or id. */
  readonly name: string;
  /** `routes_externally`; null: the file does not say, so neutron decides. */
  readonly external: boolean | null;
  /** `nat_destination`: floating IPs are translated to addresses of this network. */
  readonly natDestination: boolean;
  /** `nat_source`: floating IPs are taken from this network. */
  readonly natSource: boolean;
  /** `default_interface`: servers of labels without networks are attached to it, and clients reach servers by this network. */
  readonly defaultInterface: boolean;
}

/** A cloud of clouds.yaml with its region chosen and all defaults applied. */
export interface Cloud {
  /** Shown as `cloud` on nodes. */
  readonly name: string;
  readonly credential: Credential;
  readonly place: ServiceLocation;
  readonly tls: {
    readonly verify: boolean;
    /** Paths. */
    readonly cacert: string | null;
    readonly cert: string | null;
    readonly key: string | null;
  };
  /** Format of uploads: "qcow2", "raw". */
  readonly imageFormat: string;
  /** False with `floating_ip_source: none`: the cloud has none, or their use is not wanted. */
  readonly floatingIps: boolean;
  /** Nodes are reached by their private addresses. */
  readonly private: boolean;
  readonly forceIpv4: boolean;
  readonly networks: readonly NetworkHint[];
  /** Properties that the vendor requires on every image. */
  readonly imageProperties: Readonly<Record<string, string>>;
  /** Calls per second that the file allows; null when it sets no limit. */
  readonly rateLimit: number | null;
}

/** Prefixes of `*_endpoint_override` and `*_default_microversion`. Block storage has three, of which the first that is set counts. */
const SERVICE_KEYS: Readonly<Record<string, ServiceName>> = {
  compute: "compute",
  network: "network",
  image: "image",
  block_storage: "block-storage",
  volume: "block-storage",
  volumev3: "block-storage",
};

/** Keys that belong under `auth` and that people often write outside of it. */
const OUTSIDE_AUTH = ["username", "password", "project_name", "project_id", "auth_url", "token"];

/** Applies all defaults. Throws CloudConfigError for unusable values. */
export function compileCloud(name: string, raw: Mapping, { home }: Pick<CloudConfigPaths, "home">): Cloud {
  const values = authValues(raw);
  const authUrl = values.auth_url;
  if (authUrl === undefined)
    throw new CloudConfigError(`cloud ${name} has no auth_url; add it under auth in clouds.yaml`);
  if (!URL.canParse(authUrl))
    throw new CloudConfigError(
      `cloud ${name}: auth_url ${authUrl} is not a URL; write one such as https://cloud.example:5000/v3`,
    );
  // clouds.yaml is not read by a shell, but people write `~` in it.
  const path = (value: unknown) => text(value)?.replace(/^~(?=\/)/, home) ?? null;
  const rate = Number(text(raw.rate_limit));
  return {
    name,
    credential: { authUrl, type: text(raw.auth_type) ?? null, values },
    place: placeOf(raw),
    tls: {
      verify: flag(raw.verify, true) && !flag(raw.insecure, false),
      cacert: path(raw.cacert),
      cert: path(raw.cert),
      key: path(raw.key),
    },
    imageFormat: text(raw.image_format) ?? "qcow2",
    floatingIps: text(raw.floating_ip_source)?.toLowerCase() !== "none",
    private: flag(raw.private, false),
    forceIpv4: flag(raw.force_ipv4, false),
    networks: networksOf(raw),
    imageProperties: imageProperties(raw),
    rateLimit: Number.isFinite(rate) && rate > 0 ? rate : null,
  };
}

/** The values of `auth` as text, with those that stand outside of it by mistake; `auth` itself wins. */
function authValues(raw: Mapping): Readonly<Record<string, string>> {
  const outside = Object.fromEntries(OUTSIDE_AUTH.map((key) => [key, raw[key]]));
  const auth = { ...outside, ...(isMapping(raw.auth) ? raw.auth : {}) };
  const values: Record<string, string> = {};
  for (const [key, value] of Object.entries(auth)) {
    const word = text(value);
    if (word !== undefined) values[key] = word;
  }
  // "tenant" is the old name of "project".
  if (values.tenant_name !== undefined) values.project_name ??= values.tenant_name;
  if (values.tenant_id !== undefined) values.project_id ??= values.tenant_id;
  return values;
}

/** Where the cloud's services are, by region, interface and overrides. */
function placeOf(raw: Mapping): ServiceLocation {
  const overrides: Partial<Record<ServiceName, string>> = {};
  const microversions: Partial<Record<ServiceName, string>> = {};
  for (const [key, service] of Object.entries(SERVICE_KEYS)) {
    overrides[service] ??= text(raw[`${key}_endpoint_override`])!;
    microversions[service] ??= text(raw[`${key}_default_microversion`])!;
  }
  const listed = Array.isArray(raw.interface) ? raw.interface : [raw.interface ?? raw.endpoint_type];
  // keystone's v2 catalogs called the interfaces "publicURL" and so on; files still do.
  const interfaces = listed.flatMap((one) => text(one)?.replace(/URL$/, "") ?? []);
  return {
    region: text(raw.region_name) ?? null,
    interfaces: interfaces.length > 0 ? interfaces : ["public"],
    overrides,
    microversions,
  };
}

/** The hints about networks. An entry without a name is left out. */
function networksOf(raw: Mapping): readonly NetworkHint[] {
  const listed = Array.isArray(raw.networks) ? raw.networks.filter(isMapping) : [];
  return listed.flatMap((network) => {
    const name = text(network.name);
    if (name === undefined) return [];
    const external = network.routes_externally ?? network.routes_ipv4_externally;
    return [
      {
        name,
        external: external === undefined ? null : flag(external, false),
        natDestination: flag(network.nat_destination, false),
        natSource: flag(network.nat_source, false),
        defaultInterface: flag(network.default_interface, false),
      },
    ];
  });
}

/** `disable_vendor_agent`: properties that keep a vendor's agent from being expected in images that do not contain it. */
function imageProperties(raw: Mapping): Readonly<Record<string, string>> {
  const properties = isMapping(raw.disable_vendor_agent) ? raw.disable_vendor_agent : {};
  return Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, text(value) ?? ""]));
}
