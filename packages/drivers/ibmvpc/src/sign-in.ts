import {
  type Around,
  type BearerToken,
  CloudConfigError,
  grantedToken,
  type HttpAnswer,
  jsonIn,
  keepSecret,
  METADATA,
  neededText,
  secretText,
  tokenForm,
  type Unsent,
} from "@nodeyard/driver";
import { faultOf } from "./errors.ts";

/** A login: its token, and where it is good. */
export interface Login extends BearerToken {
  /** The account that the token names; null: it cannot be read. */
  readonly account: string | null;
  /** Addresses without a slash at the end. */
  readonly vpc: string;
  readonly groups: string;
}

const METADATA_VERSION = "2022-03-01";
/** Seconds for which the first of the metadata service's two tokens serves: it is used at once. */
const IDENTITY_S = 300;
/** Where IBM's services put the token of a compute resource. */
const TOKEN_FILES = [
  "/var/run/secrets/tokens/vault-token",
  "/var/run/secrets/tokens/sa-token",
  "/var/run/secrets/codeengine.cloud.ibm.com/compute-resource-token/token",
];
const GRANT = "urn:ibm:params:oauth:grant-type:";

/**
 * Signs in by an API key, or as a trusted profile by the token of a compute resource or by the metadata service. Properties are those of IBM's
 * SDKs, with the prefix `VPC_`: of the file, else of the environment. All are read anew. Rejects with CloudConfigError or NoAnswer.
 */
export async function signIn(
  ask: (request: Unsent) => Promise<HttpAnswer>,
  { file, region, around, now }: { file: string | null; region: string; around: Around; now: number },
): Promise<Login> {
  const of = propertiesOf(file ?? around.env.IBM_CREDENTIALS_FILE ?? null, around);
  const address = (key: string, usual: string): string => {
    const url = of(key) ?? usual;
    if (URL.parse(url)?.host) return url.replace(/\/+$/, "");
    throw new CloudConfigError(`${key} is ${url}, which is no address; write one that begins with https://`);
  };
  const key = of("VPC_APIKEY");
  const [id = null, name = null, crn = null] = ["ID", "NAME", "CRN"].map((word) =>
    of(`VPC_IAM_PROFILE_${word}`),
  );
  const granted = (request: Unsent) => grantedToken(ask, request, faultOf, now);
  const byForm = (grant: string, fields: Readonly<Record<string, string | null>>) => {
    const iam = address("VPC_AUTH_URL", "https://iam.cloud.ibm.com").replace(/\/identity\/token$/, "");
    return granted(tokenForm(`${iam}/identity/token`, { grant_type: `${GRANT}${grant}`, ...fields }));
  };
  const byMetadata = (method: "PUT" | "POST", what: string, headers: object, body: object) =>
    granted({
      ...{ method, body: JSON.stringify(body) },
      url: `${address("VPC_AUTH_URL", METADATA)}/instance_identity/v1/${what}?version=${METADATA_VERSION}`,
      headers: { "content-type": "application/json", "metadata-flavor": "ibm", ...headers },
    });
  const ways: Readonly<Record<string, () => Promise<BearerToken>>> = {
    iam() {
      if (key === null) throw new CloudConfigError("there is no API key; add VPC_APIKEY");
      keepSecret(key, "configured");
      return byForm("apikey", { apikey: key });
    },
    async container() {
      const { read } = around;
      const path = of("VPC_CR_TOKEN_FILENAME") ?? TOKEN_FILES.find((one) => read(one) !== undefined);
      if (path !== undefined)
        return byForm("cr-token", { cr_token: secretText(path, read), profile_id: id, profile_name: name });
      throw new CloudConfigError(
        "there is no credential of IBM Cloud: set VPC_APIKEY, or VPC_AUTH_TYPE and what it needs, in credentials-file or in the environment",
      );
    },
    async vpc() {
      const { text } = await byMetadata("PUT", "token", {}, { expires_in: IDENTITY_S });
      const profile = [{ id }, { name }, { crn }].find((one) => Object.values(one)[0] !== null);
      const body = profile === undefined ? {} : { trusted_profile: profile };
      return byMetadata("POST", "iam_token", { authorization: `Bearer ${text}` }, body);
    },
  };
  const type = of("VPC_AUTH_TYPE")?.toLowerCase() ?? (key === null ? "container" : "iam");
  const way = ways[type];
  if (way === undefined) throw new CloudConfigError(`VPC_AUTH_TYPE is ${type}; write iam, container or vpc`);
  const token = await way();
  return {
    ...{ ...token, account: accountOf(token.text) },
    vpc: address("VPC_URL", `https://${region}.iaas.cloud.ibm.com/v1`),
    groups: address("RESOURCE_MANAGER_URL", "https://resource-controller.cloud.ibm.com"),
  };
}

/** A file has a property in each line, `NAME=VALUE`, and `#` before remarks. */
function propertiesOf(path: string | null, { env, read }: Around): (key: string) => string | null {
  if (path === null) return (key) => env[key] || null;
  const lines = neededText(path, read).matchAll(/^[ \t]*([A-Za-z_]\w*)[ \t]*=[ \t]*(.*?)[ \t\r]*$/gm);
  const file = new Map([...lines].map(([, name = "", value = ""]) => [name.toUpperCase(), value]));
  return (key) => file.get(key) || null;
}

/** Tokens are signed JSON; only who reads them as a server checks the signature. */
function accountOf(token: string): string | null {
  const { account } = jsonIn(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
  const { bss } = (account ?? {}) as { readonly bss?: unknown };
  return typeof bss === "string" ? bss : null;
}
