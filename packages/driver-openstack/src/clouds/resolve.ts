import { CloudConfigError } from "../client/index.ts";
import type { Cloud } from "./cloud.ts";
import { compileCloud } from "./compile.ts";
import { cloudOfEnvironment } from "./environment.ts";
import { isMapping, type Mapping, overlay, readMapping, text } from "./mapping.ts";
import type { CloudConfigPaths } from "./search.ts";

/** What nodepool.yaml says of where a provider is. */
export interface Choice {
  /** `cloud`; null: OS_CLOUD, the only one there is, or the one that OS_* variables describe. */
  readonly cloud: string | null;
  /** `region-name`. */
  readonly region: string | null;
}

const ENVIRONMENT = "envvars";

/**
 * The cloud that is meant, from clouds.yaml, secure.yaml, the vendor's profile and the environment. Throws CloudConfigError
 * that says which file lacks what.
 */
export function resolveCloud(choice: Choice, around: CloudConfigPaths): Cloud {
  const clouds = readMapping("clouds", "clouds", around);
  const secure = readMapping("secure", "clouds", around);
  const fromEnvironment = cloudOfEnvironment(around.env);
  const known: Record<string, Mapping> = {};
  for (const [name, value] of Object.entries(clouds.entries)) if (isMapping(value)) known[name] = value;
  if (fromEnvironment !== undefined) known[ENVIRONMENT] ??= fromEnvironment;
  const name = choice.cloud ?? (around.env.OS_CLOUD || undefined) ?? only(known);
  const own = Object.hasOwn(known, name) ? known[name] : undefined;
  if (own === undefined) {
    const where = clouds.path === null ? "there is no clouds.yaml" : `${clouds.path} has`;
    const names = Object.keys(known).join(", ") || "none";
    throw new CloudConfigError(
      clouds.path === null
        ? `cloud ${name} is not known: ${where}; looked in OS_CLIENT_CONFIG_FILE, the current folder, ~/.config/openstack and /etc/openstack`
        : `cloud ${name} is not known: ${where} ${names}`,
    );
  }
  const secret = Object.hasOwn(secure.entries, name) ? secure.entries[name] : undefined;
  const merged = overlay(own, isMapping(secret) ? secret : {});
  const whole = overlay(profileOf(merged, around), merged);
  return compileCloud(name, inRegion(name, whole, choice.region ?? text(around.env.OS_REGION_NAME)), around);
}

function only(known: Readonly<Record<string, Mapping>>): string {
  const names = Object.keys(known);
  if (names.length === 1) return names[0]!;
  if (names.includes(ENVIRONMENT)) return ENVIRONMENT;
  throw new CloudConfigError(
    names.length === 0
      ? "no cloud is configured: write a clouds.yaml, or set OS_AUTH_URL and what belongs to it"
      : `the provider names no cloud, and there are ${names.join(", ")}; add cloud: to it, or set OS_CLOUD`,
  );
}

/** `profile` (or the older `cloud`) inside an entry names a vendor's part in clouds-public.yaml. */
function profileOf(cloud: Mapping, around: CloudConfigPaths): Mapping {
  const name = text(cloud.profile) ?? text(cloud.cloud);
  if (name === undefined) return {};
  const vendors = readMapping("clouds-public", "public-clouds", around);
  const found = Object.hasOwn(vendors.entries, name) ? vendors.entries[name] : undefined;
  if (isMapping(found)) return found;
  throw new CloudConfigError(
    `profile ${name} is in no clouds-public.yaml; Nodeyard ships no vendor profiles: copy its settings there, or into clouds.yaml`,
  );
}

/** The region's own settings over the cloud's. `regions` is a list of names, or of mappings with `name` and `values`. */
function inRegion(cloudName: string, cloud: Mapping, wanted: string | undefined): Mapping {
  const regions = (Array.isArray(cloud.regions) ? cloud.regions : []).map((region) =>
    isMapping(region)
      ? { name: text(region.name), values: region.values }
      : { name: text(region), values: {} },
  );
  const name = wanted ?? text(cloud.region_name) ?? regions[0]?.name;
  if (name === undefined) return cloud;
  const region = regions.find((one) => one.name === name);
  if (regions.length > 0 && region === undefined) {
    throw new CloudConfigError(
      `cloud ${cloudName} has no region ${name}; its regions are ${regions.map((one) => one.name).join(", ")}`,
    );
  }
  const values = isMapping(region?.values) ? region.values : {};
  return { ...overlay(cloud, values), region_name: name };
}
