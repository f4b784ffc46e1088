import {
  CloudConfigError,
  callText,
  type HttpAnswer,
  keepSecret,
  NoAnswer,
  neededText,
  type ReadFile,
  type Unsent,
} from "@nodeyard/driver";

/** Where credentials are read. */
export interface Around {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly read: ReadFile;
}

/** A login: its token, and where it is good. */
export interface Login {
  readonly text: string;
  /** Wall time of its end, milliseconds. */
  readonly end: number;
  /** The account that the token names; null: it cannot be read. */
  readonly account: string | null;
  /** Addresses without a slash at the end. */
  readonly vpc: string;
  readonly groups: string;
}

/** Of the metadata service, which is on a machine's own link. */
const METADATA = "http://169.254.169.254";
const METADATA_VERSION = "2022-03-01";
/** Seconds for which the first of its two tokens serves: it is used at once. */
const IDENTITY_S = 300;
/** Where IBM's services put the token of a compute resource. */
const TOKEN_FILES = [
  "/var/run/secrets/tokens/vault-token",
  "/var/run/secrets/tokens/sa-token",
  "/var/run/secrets/codeengine.cloud.ibm.com/compute-resource-token/token",
];
const FORM = { "content-type": "application/x-www-form-urlencoded", accept: "application/json" };
const JSON_FORM = {
  "content-type": "application/json",
  accept: "application/json",
  "metadata-flavor": "ibm",
};

type Ask = (request: Unsent) => Promise<HttpAnswer>;

/**
 * Signs in by an API key, or as a trusted profile by the token of a compute resource or by the metadata service. Properties are those of IBM's
 * SDKs, with the prefix `VPC_`: of the file, else of the environment. All are read anew. Rejects with CloudConfigError or NoAnswer.
 */
export async function signIn(
  ask: Ask,
  { file, region, around, now }: { file: string | null; region: string; around: Around; now: () => number },
): Promise<Login> {
  const of = propertiesOf(file ?? around.env.IBM_CREDENTIALS_FILE ?? null, around);
  const address = (key: string, usual: string): string => {
    const url = of(key) ?? usual;
    if (URL.parse(url)?.host) return url.replace(/\/+$/, "");
    throw new CloudConfigError(`${key} is ${url}, which is no address; write one that begins with https://`);
  };
  const { access_token: text, expires_in: seconds } = await granted(ask, of, address, around.read);
  if (typeof text !== "string" || !(Number(seconds) > 0)) throw new NoAnswer("the login gave no token");
  keepSecret(text);
  return {
    ...{ text, end: now() + Number(seconds) * 1_000, account: accountOf(text) },
    vpc: address("VPC_URL", `https://${region}.iaas.cloud.ibm.com/v1`),
    groups: address("RESOURCE_MANAGER_URL", "https://resource-controller.cloud.ibm.com"),
  };
}

/** Whether this host's own metadata service is called. Proxies do not reach that. */
export function isOfHost(url: string): boolean {
  return url.startsWith(`${METADATA}/`);
}

type Properties = (key: string) => string | null;
type Json = Readonly<Record<string, unknown>>;

async function granted(
  ask: Ask,
  of: Properties,
  address: (key: string, usual: string) => string,
  read: ReadFile,
): Promise<Json> {
  const key = of("VPC_APIKEY");
  const type = of("VPC_AUTH_TYPE")?.toLowerCase() ?? (key === null ? "container" : "iam");
  const [id, name, crn] = ["ID", "NAME", "CRN"].map((word) => of(`VPC_IAM_PROFILE_${word}`) ?? undefined);
  if (type === "vpc") {
    const root = address("VPC_AUTH_URL", METADATA);
    const asked = async (method: "PUT" | "POST", what: string, headers: Unsent["headers"], body: object) => {
      const url = `${root}/instance_identity/v1/${what}?version=${METADATA_VERSION}`;
      return answered(ask, {
        method,
        url,
        headers: { ...JSON_FORM, ...headers },
        body: JSON.stringify(body),
      });
    };
    const { access_token: identity } = await asked("PUT", "token", {}, { expires_in: IDENTITY_S });
    keepSecret(String(identity));
    const profile = [{ id }, { name }, { crn }].find((one) => Object.values(one)[0] !== undefined);
    const body = profile === undefined ? {} : { trusted_profile: profile };
    return asked("POST", "iam_token", { authorization: `Bearer ${identity}` }, body);
  }
  const form = new URLSearchParams({
    grant_type: `urn:ibm:params:oauth:grant-type:${type === "iam" ? "apikey" : "cr-token"}`,
  });
  if (type === "iam") {
    if (key === null) throw new CloudConfigError("there is no API key; add VPC_APIKEY");
    keepSecret(key, "configured");
    form.set("apikey", key);
  } else if (type === "container") {
    const token = tokenIn(of("VPC_CR_TOKEN_FILENAME"), read);
    keepSecret(token);
    form.set("cr_token", token);
    if (id !== undefined) form.set("profile_id", id);
    if (name !== undefined) form.set("profile_name", name);
  } else throw new CloudConfigError(`VPC_AUTH_TYPE is ${type}; write iam, container or vpc`);
  const iam = address("VPC_AUTH_URL", "https://iam.cloud.ibm.com").replace(/\/identity\/token$/, "");
  return answered(ask, {
    method: "POST",
    url: `${iam}/identity/token`,
    headers: FORM,
    body: form.toString(),
  });
}

/** A file has a property in each line, `NAME=VALUE`, and `#` before remarks. */
function propertiesOf(path: string | null, { env, read }: Around): Properties {
  if (path === null) return (key) => env[key] || null;
  const lines = neededText(path, read).matchAll(/^[ \t]*([A-Za-z_]\w*)[ \t]*=[ \t]*(.*?)[ \t\r]*$/gm);
  const file = new Map([...lines].map(([, name = "", value = ""]) => [name.toUpperCase(), value]));
  return (key) => file.get(key) || null;
}

function tokenIn(path: string | null, read: ReadFile): string {
  const found = path ?? TOKEN_FILES.find((one) => read(one) !== undefined);
  if (found !== undefined) return neededText(found, read).trim();
  throw new CloudConfigError(
    "there is no credential of IBM Cloud: set VPC_APIKEY, or VPC_AUTH_TYPE and what it needs, in credentials-file or in the environment",
  );
}

/** The body of an answer. A refusal is a fault of the credentials; what else goes wrong may pass. */
async function answered(ask: Ask, request: Unsent): Promise<Json> {
  const { status, text } = await ask(request);
  let body: Json = {};
  try {
    body = JSON.parse(text) ?? {};
  } catch {
    // The status says enough.
  }
  if (status < 300) return body;
  const { errorMessage = "no reason is given", errorCode = status } = body;
  const message = `${callText(request)} was answered ${status}: ${errorMessage} (${errorCode})`;
  if (![400, 401, 403, 404].includes(status)) throw new NoAnswer(message);
  throw new CloudConfigError(`${message}; check the credentials`);
}

/** Tokens are signed JSON; only who reads them as a server checks the signature. */
function accountOf(token: string): string | null {
  try {
    const payload = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
    return typeof payload.account?.bss === "string" ? payload.account.bss : null;
  } catch {
    return null;
  }
}
