import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { systemClock } from "@nodeyard/runtime";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { type AwsServer, motoPython, requireAws, startAws } from "../../../../testing/aws/index.ts";
import { Aws } from "../src/client/aws.ts";
import { connectionOf, ProxiedHandler } from "../src/edge/http.ts";
import { sdk } from "../src/index.ts";

// boto3, on which Nodepool's driver stands, is the judge of AWS's files and variables: the same request to the same place, by the same keys.

const JUDGE = join(import.meta.dirname, "../../../../testing/aws/judge.py");
const CONFIG = `
[default]
region = eu-west-1
[profile plain]
region = us-east-2
[profile numeric]
aws_access_key_id = 000123456789
aws_secret_access_key = 1234e5
region = us-west-1
[profile role]
role_arn = arn:aws:iam::123456789012:role/ci
source_profile = plain
region = us-west-2
[profile chain]
role_arn = arn:aws:iam::123456789012:role/deep
source_profile = role
external_id = 0042
region = us-gov-west-1
[profile role-of-variables]
role_arn = arn:aws:iam::123456789012:role/ci
credential_source = Environment
region = us-west-2
[profile process]
credential_process = printf '{"Version":1,"AccessKeyId":"AKIAPROCESS","SecretAccessKey":"0123e4","SessionToken":"a/b+c=="}'
region = eu-central-1
[profile web]
role_arn = arn:aws:iam::123456789012:role/web
web_identity_token_file = FOLDER/token
region = us-west-2
[profile endpoint]
aws_access_key_id = AKIAENDPOINT
aws_secret_access_key = sec/ret+==
endpoint_url = http://127.0.0.1:9/cloud
region = here
[profile services]
aws_access_key_id = AKIAENDPOINT
aws_secret_access_key = sec;ret#
endpoint_url = http://127.0.0.1:9
services = own
region = here
[services own]
ec2 =
  endpoint_url = http://127.0.0.1:10
[profile ignored]
aws_access_key_id = AKIAENDPOINT
aws_secret_access_key = secret
endpoint_url = http://127.0.0.1:9
ignore_configured_endpoint_urls = true
use_fips_endpoint = true
region = us-east-1
[profile both]
aws_access_key_id = AKIACONFIG
aws_secret_access_key = secret-of-config
region = eu-north-1
`;
const CREDENTIALS = `
; made by hand
[default]
aws_access_key_id = AKIADEFAULT
aws_secret_access_key = secret-of-default
[plain]
aws_access_key_id=AKIAPLAIN
aws_secret_access_key=12e4
[both]
aws_access_key_id = AKIACREDENTIALS
aws_secret_access_key = secret-of-credentials
aws_session_token = to/ken==
region = ca-central-1
`;
const KEYS = { AWS_ACCESS_KEY_ID: "AKIAVARIABLE", AWS_SECRET_ACCESS_KEY: "secret-of-variables" };

interface Case {
  readonly profile?: string;
  readonly region?: string;
  readonly env: Readonly<Record<string, string>>;
}
const named = CONFIG.match(/(?<=\[profile )[^\]]+/g)!.filter((name) => name !== "role-of-variables");
const cases: Readonly<Record<string, Case>> = {
  ...Object.fromEntries(named.map((profile) => [`profile-name: ${profile}`, { profile, env: {} }])),
  ...Object.fromEntries(named.map((name) => [`AWS_PROFILE=${name}`, { env: { AWS_PROFILE: name } }])),
  "no name": { env: {} },
  "region-name": { profile: "plain", region: "us-west-1", env: { AWS_DEFAULT_REGION: "cn-north-1" } },
  AWS_DEFAULT_REGION: { profile: "plain", env: { AWS_DEFAULT_REGION: "cn-north-1" } },
  "two regions": { env: { AWS_DEFAULT_REGION: "cn-north-1", AWS_REGION: "us-west-1" } },
  AWS_DEFAULT_PROFILE: { env: { AWS_DEFAULT_PROFILE: "plain", AWS_PROFILE: "numeric" } },
  "role of variables": { profile: "role-of-variables", env: KEYS },
  keys: { env: { ...KEYS, AWS_SESSION_TOKEN: "t==" } },
  "keys beside profile-name": { profile: "plain", env: KEYS },
  "keys beside AWS_PROFILE": { env: { ...KEYS, AWS_PROFILE: "plain" } },
  AWS_ENDPOINT_URL: { profile: "endpoint", env: { AWS_ENDPOINT_URL: "http://127.0.0.1:11" } },
  AWS_ENDPOINT_URL_EC2: { profile: "services", env: { AWS_ENDPOINT_URL_EC2: "http://127.0.0.1:12/" } },
  AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: {
    profile: "endpoint",
    env: { AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: "true" },
  },
  AWS_USE_DUALSTACK_ENDPOINT: { profile: "plain", env: { AWS_USE_DUALSTACK_ENDPOINT: "true" } },
};

/** What is asked to be sent, in place of sending it. Roles are assumed. */
class Recorder extends ProxiedHandler {
  override handle(...call: Parameters<ProxiedHandler["handle"]>): ReturnType<ProxiedHandler["handle"]> {
    const [request] = call;
    if (String(request.body).includes("Action=AssumeRole")) return super.handle(...call);
    throw Object.assign(new Error("recorded"), { request });
  }
}

async function ours({ profile = null, region = null }: { profile?: string | null; region?: string | null }) {
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const connected: typeof sdk.connectionOf = (of, service, how) => connectionOf(of, service, how, Recorder);
  const modules = { ...sdk, connectionOf: connected };
  const place = sdk.placeOf({ profile, region });
  const aws = new Aws({ place, sdk: modules, clock: systemClock, log });
  const { signal } = new AbortController();
  try {
    const { secretAccessKey } = await (await aws.client("ec2")).config.credentials();
    const sent: unknown = await aws
      .call("ec2.describeInstances", {}, signal)
      .catch((error: unknown) => error);
    const { request } = (sent as Error).cause as { request: Parameters<ProxiedHandler["handle"]>[0] };
    const { protocol, hostname, port, path, headers } = request;
    return {
      url: `${protocol}//${hostname}${port === undefined ? "" : `:${port}`}${path}`,
      authorization: headers.authorization!,
      secret: secretAccessKey,
      token: headers["x-amz-security-token"] ?? null,
    };
  } finally {
    await aws.close();
  }
}

/** Without the moment of a signature, and with new keys of a role as such. */
function steady({ url, authorization, secret, token }: Awaited<ReturnType<typeof ours>>) {
  const [, key = "", region = "", service = ""] =
    /Credential=([^/]+)\/\d+\/([^/]+)\/([^/]+)/.exec(authorization) ?? [];
  const of = key.startsWith("ASIA") ? { key: "of a role" } : { key, secret, token };
  return { url: url.replace(/\/$/, ""), region, service, ...of };
}

describe.skipIf(requireAws())("files and variables of AWS's tools", () => {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-aws-files-"));
  let aws: AwsServer;
  beforeAll(async () => {
    aws = await startAws();
    writeFileSync(join(folder, "config"), CONFIG.replace("FOLDER", folder));
    writeFileSync(join(folder, "credentials"), CREDENTIALS);
    writeFileSync(join(folder, "token"), "header.payload.signature");
    writeFileSync(join(folder, "cases.json"), JSON.stringify(cases));
  });
  afterAll(async () => {
    await aws?.close();
    rmSync(folder, { recursive: true });
  });
  afterEach(() => vi.unstubAllEnvs());

  test("give the same request as to boto3", async () => {
    for (const name of Object.keys(process.env)) if (name.startsWith("AWS_")) vi.stubEnv(name, undefined);
    vi.stubEnv("AWS_CONFIG_FILE", join(folder, "config"));
    vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", join(folder, "credentials"));
    vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
    vi.stubEnv("AWS_ENDPOINT_URL_STS", aws.url);
    const { stdout } = await promisify(execFile)(motoPython(), [JUDGE, join(folder, "cases.json")]);
    const theirs = JSON.parse(stdout) as Record<string, Awaited<ReturnType<typeof ours>>>;
    for (const [name, { env, ...named }] of Object.entries(cases)) {
      for (const [variable, value] of Object.entries(env)) vi.stubEnv(variable, value);
      expect({ name, ...steady(await ours(named)) }).toEqual({ name, ...steady(theirs[name]!) });
      for (const variable of Object.keys(env)) vi.stubEnv(variable, undefined);
    }
  });
});
