import { CloudConfigError, isMapping } from "@nodeyard/driver";
import type { Credential, ServiceLocation, ServiceName } from "../client/index.ts";
import { type CloudConfigPaths, flag, type Mapping, text, textsOf } from "./files.ts";

/** A cloud of clouds.yaml with its region chosen and all defaults applied. */
export type Cloud = ReturnType<typeof compileCloud>;
/** An entry of `networks` in clouds.yaml (openstacksdk manual, "Network config"). */
export type NetworkHint = Cloud["networks"][number];

/** Prefixes of `*_endpoint_override`. Block storage has three, of which the first that is set counts. */
const SERVICE_KEYS: Readonly<Record<ServiceName, readonly string[]>> = {
  compute: ["compute"],
  network: ["network"],
  image: ["image"],
  "block-storage": ["block_storage", "volume", "volumev3"],
};

/** Keys that belong under `auth`. People often write them outside of it, and variables have no other place. "tenant" is the old name of "project". */
const AUTH =
  /^(auth_url|token|password|username|user_id|(project|tenant)_(name|id)|((user|project)_)?domain_(name|id)|default_domain|application_credential_(name|id|secret))$/;

/** Applies all defaults. Throws CloudConfigError for unusable values. */
export function compileCloud(name: string, raw: Mapping, { home }: Pick<CloudConfigPaths, "home">) {
  // clouds.yaml is not read by a shell, but people write `~` in it.
  const path = (value: unknown) => text(value)?.replace(/^~(?=\/)/, home) ?? null;
  const rate = Number(text(raw.rate_limit));
  return {
    /** Shown as `cloud` on nodes. */
    name,
    credential: credentialOf(name, raw),
    place: placeOf(raw),
    /** Paths. */
    tls: {
      verify: flag(raw.verify, true) && !flag(raw.insecure, false),
      cacert: path(raw.cacert),
      cert: path(raw.cert),
      key: path(raw.key),
    },
    /** Format of uploads: "qcow2", "raw". */
    imageFormat: text(raw.image_format) ?? "qcow2",
    /** False with `floating_ip_source: none`: the cloud has none, or their use is not wanted. */
    floatingIps: text(raw.floating_ip_source)?.toLowerCase() !== "none",
    /** Nodes are reached by their private addresses. */
    private: flag(raw.private, false),
    /** IPv6 addresses are not recorded. */
    forceIpv4: flag(raw.force_ipv4, false),
    networks: (Array.isArray(raw.networks) ? raw.networks.filter(isMapping) : []).flatMap(networkOf),
    /** `disable_vendor_agent`: properties of every image that keep the vendor's agent from being expected in it. */
    imageProperties: textsOf(raw.disable_vendor_agent),
    /** Calls per second that the file allows; null when it sets no limit. */
    rateLimit: Number.isFinite(rate) && rate > 0 ? rate : null,
  };
}

/** The values of `auth` as text, with those that stand outside of it; `auth` itself wins. */
function credentialOf(name: string, raw: Mapping): Credential {
  const outside = Object.entries(raw).filter(([key]) => AUTH.test(key));
  const values = { ...textsOf(Object.fromEntries(outside)), ...textsOf(raw.auth) };
  if (values.tenant_name !== undefined) values.project_name ??= values.tenant_name;
  if (values.tenant_id !== undefined) values.project_id ??= values.tenant_id;
  const authUrl = values.auth_url;
  if (authUrl === undefined)
    throw new CloudConfigError(`cloud ${name} has no auth_url; add it under auth in clouds.yaml`);
  if (!URL.canParse(authUrl))
    throw new CloudConfigError(
      `cloud ${name}: auth_url ${authUrl} is not a URL; write one such as https://cloud.example:5000/v3`,
    );
  return { authUrl, type: text(raw.auth_type) ?? null, values };
}

/** Where the cloud's services are, by region, interface and overrides. */
function placeOf(raw: Mapping): ServiceLocation {
  const overrides = Object.entries(SERVICE_KEYS).flatMap(([service, keys]) => {
    const [url] = keys.flatMap((key) => text(raw[`${key}_endpoint_override`]) ?? []);
    return url === undefined ? [] : [[service, url]];
  });
  const listed = Array.isArray(raw.interface) ? raw.interface : [raw.interface ?? raw.endpoint_type];
  // keystone's v2 catalogs called the interfaces "publicURL" and so on; files still do.
  const interfaces = listed.flatMap((one) => text(one)?.replace(/URL$/, "") ?? []);
  return {
    region: text(raw.region_name) ?? null,
    interfaces: interfaces.length > 0 ? interfaces : ["public"],
    overrides: Object.fromEntries(overrides),
    microversions: { compute: text(raw.compute_default_microversion) },
  };
}

/** An entry without a name is left out. */
function networkOf(raw: Mapping) {
  const name = text(raw.name);
  if (name === undefined) return [];
  const external = raw.routes_externally ?? raw.routes_ipv4_externally;
  return {
    /** Name or id. */
    name,
    /** Null: the file does not say, so neutron decides. */
    external: external === undefined ? null : flag(external, false),
    /** Floating IPs are translated to addresses of this network. */
    natDestination: flag(raw.nat_destination, false),
    /** Floating IPs are taken from this network. */
    natSource: flag(raw.nat_source, false),
    /** Servers of labels without networks are attached to it, and clients reach servers by this network. */
    defaultInterface: flag(raw.default_interface, false),
  };
}
