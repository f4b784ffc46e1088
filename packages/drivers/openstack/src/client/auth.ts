import { CloudConfigError } from "@nodeyard/driver";

/** The credentials under `auth` in clouds.yaml; names as in keystone's API. Which ones are needed depends on the method (`authBody`). */
export interface Credential {
  /** keystone's address, with or without a version. */
  readonly authUrl: string;
  /** `auth_type`; null: it is inferred from the keys that are present. */
  readonly type: string | null;
  /** Values of `auth`, all text. */
  readonly values: Readonly<Record<string, string>>;
}

/** Methods of keystone for the values of `auth_type`, also those with a version as openstacksdk has them. */
const TYPES: Readonly<Record<string, "password" | "token" | "application_credential">> = {
  password: "password",
  v3password: "password",
  token: "token",
  v3token: "token",
  v3applicationcredential: "application_credential",
};

/** The body of `POST /v3/auth/tokens` (identity API v3). Throws CloudConfigError for missing or unsupported values. */
export function authBody(credential: Credential): object {
  const { values } = credential;
  const method = methodOf(credential);
  const identity = { methods: [method], [method]: identityOf(method, values) };
  // An application credential belongs to one project, and keystone refuses a scope with it.
  return { auth: { identity, ...(method !== "application_credential" && { scope: scopeOf(values) }) } };
}

/** The v3 root of keystone, from an `auth_url` with or without version. v2.0 was removed from keystone in 2018 (Queens), so v3 is beside it. */
export function identityUrl(authUrl: string): string {
  const base = authUrl.replace(/\/+$/, "").replace(/\/v2\.0$/, "");
  return base.endsWith("/v3") ? base : `${base}/v3`;
}

/** The method of `auth_type`, otherwise the one whose keys are present. A password beside a token wins, because tokens expire. */
function methodOf({ type, values }: Credential): (typeof TYPES)[string] {
  if (type !== null) {
    const method = TYPES[type];
    if (method !== undefined) return method;
    const known = Object.keys(TYPES).join(", ");
    throw new CloudConfigError(`auth_type ${type} is not supported; use one of ${known}`);
  }
  if (Object.keys(values).some((key) => /^application_credential_(id|name)$/.test(key)))
    return "application_credential";
  return values.token !== undefined && values.password === undefined ? "token" : "password";
}

/** The part of the body that says who logs in, under the name of the method. */
function identityOf(method: string, values: Credential["values"]): object {
  if (method === "token") return { id: needed(values, "token") };
  if (method === "password") return { user: { ...userOf(values), password: needed(values, "password") } };
  const secret = needed(values, "application_credential_secret");
  const id = values.application_credential_id;
  if (id !== undefined) return { id, secret };
  return { name: needed(values, "application_credential_name"), secret, user: userOf(values) };
}

/** A user by id, or by name, which is unique only in its domain. */
function userOf(values: Credential["values"]): object {
  if (values.user_id !== undefined) return { id: values.user_id };
  return { name: needed(values, "username"), domain: domainOf(values, "user") };
}

/** The project, without which a token has no catalog. */
function scopeOf(values: Credential["values"]): object {
  const { project_id: id, project_name: name } = values;
  if (id !== undefined) return { project: { id } };
  if (name !== undefined) return { project: { name, domain: domainOf(values, "project") } };
  throw new CloudConfigError("auth names no project; add project_name or project_id to it in clouds.yaml");
}

/** `user_domain_id`, `user_domain_name`, the common `domain_*`, then `default_domain`; otherwise the domain "default", which every cloud has. */
function domainOf(values: Credential["values"], of: "user" | "project"): object {
  const id = values[`${of}_domain_id`] ?? values.domain_id;
  if (id !== undefined) return { id };
  const name = values[`${of}_domain_name`] ?? values.domain_name;
  return name === undefined ? { id: values.default_domain ?? "default" } : { name };
}

function needed(values: Credential["values"], key: string): string {
  const value = values[key];
  if (value !== undefined && value !== "") return value;
  throw new CloudConfigError(`auth has no ${key}; add it in clouds.yaml or secure.yaml`);
}
