import { readFileSync } from "node:fs";
import { loadSharedConfigFiles } from "@smithy/core/config";

// Settings of AWS's files and variables that boto3, and so Nodepool, follows, and Amazon's SDK for Node does not.

/** The region and profile of calls: the provider's own, else those of variables; then keys of variables go before the profile's. */
export function placeOf(
  { region, profile }: { readonly region: string | null; readonly profile: string | null },
  env = process.env,
) {
  const named = profile ?? (env.AWS_DEFAULT_PROFILE || env.AWS_PROFILE || null);
  const hasKeys = Boolean(env.AWS_ACCESS_KEY_ID && env.AWS_SECRET_ACCESS_KEY);
  return {
    region: region ?? (env.AWS_DEFAULT_REGION || null),
    profile: named,
    keysOfEnvironment: profile === null && hasKeys,
  };
}

/** A service's endpoint in the profile's sections, where no variable has one, and the authorities that sign the servers' certificates. */
export async function settingsOf(profile: string | null, service: string, env = process.env) {
  const { configFile, credentialsFile } = await loadSharedConfigFiles();
  const name = profile ?? "default";
  const section = { ...configFile[name], ...credentialsFile[name] };
  const variable = env[`AWS_ENDPOINT_URL_${service.toUpperCase()}`] || env.AWS_ENDPOINT_URL;
  const isIgnored = [env.AWS_IGNORE_CONFIGURED_ENDPOINT_URLS, section.ignore_configured_endpoint_urls];
  const own = section.services && configFile[`services.${section.services}`]?.[`${service}.endpoint_url`];
  const endpoint = variable || isIgnored.includes("true") ? undefined : own || section.endpoint_url;
  const bundle = env.AWS_CA_BUNDLE || section.ca_bundle;
  return { ...(endpoint && { endpoint }), ...(bundle && { ca: readFileSync(bundle) }) };
}
