import { CloudConfigError, isMapping } from "@nodeyard/driver";
import { type Cloud, compileCloud } from "./cloud.ts";
import { type CloudConfigPaths, type Mapping, overlay, readMapping, text } from "./files.ts";

/** Name of the cloud that the OS_* variables describe, as in openstacksdk. */
const ENVIRONMENT = "envvars";

/**
 * Finds the cloud in clouds.yaml, secure.yaml, the vendor's profile and the environment. Throws CloudConfigError, which says what
 * is missing in which file. Of one key, secure.yaml counts before clouds.yaml, and that before the vendor's profile; the region's
 * values before all. Reads the files at each call. `choice`: `cloud` and `region-name` of the provider. Without a cloud it is that of OS_CLOUD,
 * the only one of the file, or the one that the OS_* variables describe.
 */
export function resolveCloud(
  choice: { readonly cloud: string | null; readonly region: string | null },
  around: CloudConfigPaths,
): Cloud {
  const clouds = readMapping("clouds", "clouds", around);
  const secure = readMapping("secure", "clouds", around);
  const fromEnvironment = cloudOfEnvironment(around.env);
  const known: Record<string, Mapping> = Object.create(null);
  // A cloud may stand in either file, or in both.
  for (const { entries } of [clouds, secure])
    for (const [name, value] of Object.entries(entries))
      if (isMapping(value)) known[name] = overlay(known[name] ?? {}, value);
  if (fromEnvironment !== undefined) known[ENVIRONMENT] ??= fromEnvironment;
  const name = choice.cloud ?? (around.env.OS_CLOUD || undefined) ?? only(known);
  const own = known[name];
  if (own === undefined) {
    const where =
      clouds.path === null && secure.path === null
        ? "there is no clouds.yaml; looked in OS_CLIENT_CONFIG_FILE, the current folder, ~/.config/openstack and /etc/openstack"
        : `${clouds.path ?? secure.path} has ${Object.keys(known).join(", ") || "none"}`;
    throw new CloudConfigError(`cloud ${name} is not known: ${where}`);
  }
  const whole = overlay(profileOf(own, around), own);
  return compileCloud(name, inRegion(name, whole, choice.region ?? text(around.env.OS_REGION_NAME)), around);
}

/** The name of the cloud when nothing names one. Throws CloudConfigError unless exactly one is meant. */
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

/** The vendor's profile in clouds-public.yaml that an entry names by `profile` (or the older `cloud`). */
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

/** Merges the settings of a region into those of the cloud. `regions` is a list of names, or of mappings with `name` and `values`. */
function inRegion(cloudName: string, cloud: Mapping, wanted: string | undefined): Mapping {
  const listed: readonly unknown[] = Array.isArray(cloud.regions) ? cloud.regions : [];
  const regions = listed.map((one) => (isMapping(one) ? one : { name: one }));
  const names = regions.map((one) => text(one.name));
  const name = wanted ?? text(cloud.region_name) ?? names[0];
  if (name === undefined) return cloud;
  if (names.length > 0 && !names.includes(name))
    throw new CloudConfigError(
      `cloud ${cloudName} has no region ${name}; its regions are ${names.join(", ")}`,
    );
  const { values } = regions[names.indexOf(name)] ?? {};
  return { ...overlay(cloud, isMapping(values) ? values : {}), region_name: name };
}

/** The cloud that `OS_*` variables describe, which are keys of an entry; undefined when they do not. */
function cloudOfEnvironment(env: CloudConfigPaths["env"]): Mapping | undefined {
  const keys = Object.entries(env).flatMap(([name, value]) =>
    // OS_CLOUD chooses an entry. It is no key of one, where it would be a profile.
    value && name.startsWith("OS_") && name !== "OS_CLOUD" ? [[name.slice(3).toLowerCase(), value]] : [],
  );
  const entry: Mapping = Object.fromEntries(keys);
  return entry.auth_url === undefined ? undefined : entry;
}
