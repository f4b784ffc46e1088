import { readFileSync } from "node:fs";
import { loadSharedConfigFiles } from "@smithy/core/config";

// Settings of AWS's files and variables that boto3, and so Nodepool, follows, and Amazon's SDK for Node does not.

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
