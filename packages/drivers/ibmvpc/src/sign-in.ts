import {
  CloudConfigError,
  callText,
  type HttpAnswer,
  keepSecret,
  messageOf,
  NoAnswer,
  noAnswer,
  type Unsent,
  type Wire,
} from "@nodeyard/driver";
import { faultOf } from "./errors.ts";

/** Where credentials are read. */
export interface Around {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The text of a file; undefined: there is none. */
  readonly read: (path: string) => string | undefined;
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

/**
 * Signs in by an API key, or as a trusted profile by the token of a compute resource or by the metadata service. Properties are those of IBM's SDKs, with the
 * prefix `VPC_`: of the file, else of the environment. All are read anew. Rejects with CloudConfigError or NoAnswer.
 */
export async function signIn(
  {
    file,
    region,
    around,
    now,
    send,
  }: {
    readonly file: string | null;
    readonly region: string;
    readonly around: Around;
    /** Wall time, milliseconds. */
    readonly now: () => number;
    readonly send: Wire["send"];
  },
  signal: AbortSignal,
): Promise<Login> {
  const of = propertiesOf(file ?? around.env.IBM_CREDENTIALS_FILE ?? null, around);
  const key = of("VPC_APIKEY") ?? of("VPC_IAM_APIKEY");
  const type = (of("VPC_AUTH_TYPE") ?? (key === null ? "container" : "iam")).toLowerCase();
  const [profileId, profileName, profileCrn] = ["ID", "NAME", "CRN"].map((one) =>
    of(`VPC_IAM_PROFILE_${one}`),
  );
  const iam = urlOf("VPC_AUTH_URL", of, "https://iam.cloud.ibm.com").replace(/\/identity\/token$/, "");
  const ask = async (request: Unsent): Promise<Readonly<Record<string, unknown>>> =>
    answered(request, () => send({ ...request, signal }));
  const grant = (kind: string, words: Readonly<Record<string, string>>) =>
    ask({
      method: "POST",
      url: `${iam}/identity/token`,
      headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
      body: new URLSearchParams({
        grant_type: `urn:ibm:params:oauth:grant-type:${kind}`,
        ...words,
      }).toString(),
    });
  let answer: Readonly<Record<string, unknown>>;
  if (type === "iam") {
    if (key === null)
      throw new CloudConfigError(`there is no API key; add VPC_APIKEY to ${file ?? "the environment"}`);
    keepSecret(key, "configured");
    answer = await grant("apikey", { apikey: key, response_type: "cloud_iam" });
  } else if (type === "container") {
    const token = tokenIn(of("VPC_CR_TOKEN_FILENAME"), around);
    keepSecret(token);
    answer = await grant("cr-token", {
      cr_token: token,
      ...(profileId && { profile_id: profileId }),
      ...(profileName && { profile_name: profileName }),
    });
  } else if (type === "vpc") {
    const root = urlOf("VPC_AUTH_URL", of, METADATA);
    const call = (method: "PUT" | "POST", name: string, headers: Unsent["headers"], body: object) =>
      ask({
        method,
        url: `${root}/instance_identity/v1/${name}?version=${METADATA_VERSION}`,
        headers: { "content-type": "application/json", accept: "application/json", ...headers },
        body: JSON.stringify(body),
      });
    const first = await call("PUT", "token", { "metadata-flavor": "ibm" }, { expires_in: IDENTITY_S });
    const profile = profileCrn ? { crn: profileCrn } : profileId ? { id: profileId } : undefined;
    const bearer = { authorization: `Bearer ${String(first.access_token)}` };
    answer = await call("POST", "iam_token", bearer, profile ? { trusted_profile: profile } : {});
  } else throw new CloudConfigError(`VPC_AUTH_TYPE is ${type}; write iam, container or vpc`);
  const { access_token: text, expires_in: seconds } = answer;
  if (typeof text !== "string" || !(Number(seconds) > 0))
    throw new NoAnswer("the login gave no token of IBM Cloud");
  keepSecret(text);
  return {
    ...{ text, end: now() + Number(seconds) * 1_000, account: accountOf(text) },
    vpc: urlOf("VPC_URL", of, `https://${region}.iaas.cloud.ibm.com/v1`),
    groups: urlOf("RESOURCE_MANAGER_URL", of, "https://resource-controller.cloud.ibm.com"),
  };
}

/** Whether this host's own metadata service is called. Proxies do not reach that. */
export function isOfHost(url: string): boolean {
  return url.startsWith(`${METADATA}/`);
}

type Properties = (key: string) => string | null;

/** A file has a property in each line, `NAME=VALUE`, and `#` before remarks. */
function propertiesOf(path: string | null, { env, read }: Around): Properties {
  const lines = path === null ? [] : textOf(path, read).split(/\r?\n/);
  const file = new Map(
    lines.flatMap((line) => {
      const [, name, value] = /^\s*([A-Za-z_]\w*)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
      return name === undefined || value === undefined ? [] : [[name.toUpperCase(), value] as const];
    }),
  );
  return (key) => (path === null ? env[key] : file.get(key)) || null;
}

function urlOf(key: string, of: Properties, otherwise: string): string {
  const url = of(key) ?? otherwise;
  if (!/^https?:\/\/[^/\s]/.test(url))
    throw new CloudConfigError(`${key} is no address that begins with https://`);
  return url.replace(/\/+$/, "");
}

function tokenIn(path: string | null, { read }: Around): string {
  if (path !== null) return textOf(path, read).trim();
  const found = TOKEN_FILES.map((one) => read(one)).find((text) => text !== undefined);
  if (found !== undefined) return found.trim();
  throw new CloudConfigError(
    "there is no credential of IBM Cloud: set VPC_APIKEY, or VPC_AUTH_TYPE and what it needs, in credentials-file or in the environment",
  );
}

function textOf(path: string, read: Around["read"]): string {
  let text: string | undefined;
  try {
    text = read(path);
  } catch (error) {
    throw new CloudConfigError(`${path} cannot be read: ${messageOf(error)}`, { cause: error });
  }
  if (text === undefined) throw new CloudConfigError(`there is no file ${path}`);
  return text;
}

/** The body of an answer. A refusal is a fault of the credentials; what else goes wrong may pass. */
async function answered(
  request: Unsent,
  send: () => Promise<HttpAnswer>,
): Promise<Readonly<Record<string, unknown>>> {
  let answer: HttpAnswer;
  try {
    answer = await send();
  } catch (error) {
    throw noAnswer(callText(request), error);
  }
  const { status, text } = answer;
  let body: Readonly<Record<string, unknown>> = {};
  try {
    body = JSON.parse(text) ?? {};
  } catch {
    // The status says enough.
  }
  if (status < 300) return body;
  const { errorCode, errorMessage } = body;
  const said =
    typeof errorMessage === "string"
      ? `${errorMessage} (${errorCode})`
      : (faultOf(answer).text ?? String(status));
  const message = `${callText(request)} was answered ${status}: ${said}`;
  if ([400, 401, 403, 404].includes(status)) throw new CloudConfigError(`${message}; check the credentials`);
  throw new NoAnswer(message);
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
