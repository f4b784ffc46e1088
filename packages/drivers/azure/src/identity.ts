import {
  type Around,
  CloudConfigError,
  keepSecret,
  METADATA,
  neededText,
  secretText,
  tokenForm,
  type Unsent,
} from "@nodeyard/driver";

/** Who calls which subscription, where. Everything comes from the file, else from the environment. */
export interface Identity {
  readonly subscription: string;
  /** Addresses without a slash at the end, of the cloud that the identity belongs to: national clouds have their own. */
  readonly authority: string;
  readonly resourceManager: string;
  readonly tenant: string | null;
  /** Null: the managed identity of the host. */
  readonly client: string | null;
  readonly secret: string | null;
  readonly tokenFile: string | null;
}

/** The national clouds, by the host at which their users log in. */
const CLOUDS: Readonly<Record<string, string>> = {
  "login.microsoftonline.com": "https://management.azure.com",
  "login.microsoftonline.us": "https://management.usgovcloudapi.net",
  "login.chinacloudapi.cn": "https://management.chinacloudapi.cn",
  "login.partner.microsoftonline.cn": "https://management.chinacloudapi.cn",
};

/** The identity in the file of `az ad sp create-for-rbac --sdk-auth`, else in the variables of Azure's SDKs. Throws CloudConfigError. */
export function identityOf(path: string | null, { env, read }: Around): Identity {
  const place = path ?? env.AZURE_AUTH_LOCATION ?? null;
  const file = place === null ? {} : parsed(place, read);
  const of = (key: string, name?: string): string | null => {
    const value = file[key] ?? (name === undefined ? undefined : env[name]);
    return typeof value === "string" && value !== "" ? value : null;
  };
  const subscription = of("subscriptionId", "AZURE_SUBSCRIPTION_ID");
  if (subscription === null)
    throw new CloudConfigError(
      `there is no subscription; add subscriptionId to ${place ?? "the file of auth-path"}, or set AZURE_SUBSCRIPTION_ID`,
    );
  const login = of("activeDirectoryEndpointUrl", "AZURE_AUTHORITY_HOST") ?? "login.microsoftonline.com";
  const authority = /^https?:/.test(login) ? login : `https://${login}`;
  const host = URL.parse(authority)?.host ?? "";
  const resourceManager = of("resourceManagerEndpointUrl") ?? CLOUDS[host];
  if (resourceManager === undefined)
    throw new CloudConfigError(
      `${host} is no login of a cloud that is known; add resourceManagerEndpointUrl to the file`,
    );
  const secret = of("clientSecret", "AZURE_CLIENT_SECRET");
  const tokenFile = of("federatedTokenFile", "AZURE_FEDERATED_TOKEN_FILE");
  const [tenant, client] = [of("tenantId", "AZURE_TENANT_ID"), of("clientId", "AZURE_CLIENT_ID")];
  if ((secret !== null || tokenFile !== null) && (tenant === null || client === null))
    throw new CloudConfigError("there is a credential without tenantId or clientId; add them");
  keepSecret(secret, "configured");
  return {
    ...{ subscription, tenant, client, secret, tokenFile },
    authority: authority.replace(/\/+$/, ""),
    resourceManager: resourceManager.replace(/\/+$/, ""),
  };
}

/** How a token is asked for. Throws CloudConfigError when the file of a federated token cannot be read. */
export function tokenRequest(
  { authority, resourceManager, tenant, client, secret, tokenFile }: Identity,
  { env, read }: Around,
): Unsent {
  if (secret === null && tokenFile === null) return managedRequest(resourceManager, client, env);
  return tokenForm(`${authority}/${tenant}/oauth2/v2.0/token`, {
    ...{ grant_type: "client_credentials", scope: `${resourceManager}/.default` },
    ...{ client_id: client, client_secret: secret },
    ...(secret === null && {
      client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
      client_assertion: secretText(tokenFile!, read),
    }),
  });
}

/** App Service and its kin name an endpoint and a header; on other machines it is the metadata service. */
function managedRequest(resource: string, client: string | null, env: Around["env"]): Unsent {
  const { IDENTITY_ENDPOINT: endpoint, IDENTITY_HEADER: header } = env;
  const words = { resource, ...(client !== null && { client_id: client }) };
  if (endpoint !== undefined && header !== undefined) {
    keepSecret(header);
    const query = new URLSearchParams({ "api-version": "2019-08-01", ...words });
    return { method: "GET", url: `${endpoint}?${query}`, headers: { "x-identity-header": header } };
  }
  const query = new URLSearchParams({ "api-version": "2018-02-01", ...words });
  const host = (env.AZURE_POD_IDENTITY_AUTHORITY_HOST ?? METADATA).replace(/\/+$/, "");
  const url = `${host}/metadata/identity/oauth2/token?${query}`;
  return { method: "GET", url, headers: { metadata: "true" } };
}

/** Whether this host itself gives out tokens there. Proxies do not reach that, and would read the header that guards it. */
export function isOfHost(url: string, env: Around["env"]): boolean {
  const own = [METADATA, env.IDENTITY_ENDPOINT, env.AZURE_POD_IDENTITY_AUTHORITY_HOST];
  return own.some((one) => one !== undefined && URL.parse(one)?.host === new URL(url).host);
}

function parsed(path: string, read: Around["read"]): Readonly<Record<string, unknown>> {
  try {
    // Azure's tools write the file with a mark of its byte order.
    const value: unknown = JSON.parse(neededText(path, read).replace(/^\uFEFF/, ""));
    if (typeof value === "object" && value !== null) return value as Readonly<Record<string, unknown>>;
  } catch (error) {
    if (error instanceof CloudConfigError) throw error;
    // The parser's error quotes the file, which has a secret.
  }
  throw new CloudConfigError(`${path} is no JSON of credentials`);
}
