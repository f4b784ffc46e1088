import type { Mapping } from "./mapping.ts";

/** What the name of a variable means; the names that openstackclient documents. */
const AUTH = [
  "auth_url",
  "username",
  "user_id",
  "password",
  "project_name",
  "project_id",
  "user_domain_name",
  "user_domain_id",
  "project_domain_name",
  "project_domain_id",
  "domain_name",
  "domain_id",
  "default_domain",
  "token",
  "application_credential_id",
  "application_credential_name",
  "application_credential_secret",
];
const TOP = ["auth_type", "region_name", "interface", "cacert", "cert", "key"];

/** The cloud that `OS_*` variables describe; undefined when they name none. */
export function cloudOfEnvironment(env: Readonly<Record<string, string | undefined>>): Mapping | undefined {
  const value = (name: string) => env[`OS_${name.toUpperCase()}`] || undefined;
  const pick = (names: readonly string[]) =>
    Object.fromEntries(names.flatMap((name) => (value(name) === undefined ? [] : [[name, value(name)]])));
  const auth = {
    ...(value("tenant_name") === undefined ? {} : { project_name: value("tenant_name") }),
    ...(value("tenant_id") === undefined ? {} : { project_id: value("tenant_id") }),
    ...pick(AUTH),
  };
  if (value("auth_url") === undefined) return undefined;
  return {
    ...(value("endpoint_type") === undefined ? {} : { interface: value("endpoint_type") }),
    ...(value("insecure") === undefined ? {} : { verify: !isTrue(value("insecure")) }),
    ...pick(TOP),
    auth,
  };
}

function isTrue(word: string | undefined): boolean {
  return word !== undefined && !["false", "no", "0", ""].includes(word.toLowerCase());
}
