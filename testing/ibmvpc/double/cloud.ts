import type { Clock } from "@nodeyard/runtime";
import { Bucket, BucketRefusal } from "../../bucket.ts";
import { type Answer, type Arrived, Dropped, silence } from "../../double-server.ts";
import { json, page, Refusal } from "./answers.ts";
import { Models } from "./models.ts";
import { DEFAULTS, type IbmFault, type IbmSettings } from "./settings.ts";
import { ACCOUNT, REGION } from "./site.ts";
import type { Json } from "./things.ts";
import { Vpc } from "./vpc.ts";

/** A call as it came over the wire. */
export interface IbmCall {
  /** As in `IbmFault`. */
  readonly call: string;
  readonly host: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
  /** 0: there was no answer. */
  readonly status: number;
}

export const API_KEY = "api-key-of-the-double-of-ibm";
export const COMPUTE_TOKEN = "eyJ.compute-resource.token";
const LIFE_S = 3_600;
const MODELS = new Models();

/** IBM Cloud on the wire: logins, VPC of one region, resource groups, object storage. What goes in and out is judged by the models of IBM's own SDK. */
export class IbmCloud {
  /** Of the region of the tests. */
  readonly vpc: Vpc;
  readonly objects = new Bucket();
  readonly calls: IbmCall[] = [];
  /** What did not fit the models: of requests, and of the double's own answers. */
  readonly violations: string[] = [];
  /** Its address for links in answers. */
  url = `https://${REGION}.iaas.cloud.ibm.com`;
  /** The account of further logins. */
  account = ACCOUNT;
  readonly #clock: Clock;
  readonly #elsewhere: Vpc;
  readonly #tokens = new Map<string, number>();
  #settings: IbmSettings = DEFAULTS;
  #faults: { fault: IbmFault; left: number; passes: number }[] = [];
  #bucket: { left: number; at: number } | undefined;
  #refused = false;
  #quoting: string | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.vpc = this.#region();
    this.#elsewhere = this.#region();
  }

  /** Changes settings; those that are not named stay. */
  set(settings: Partial<IbmSettings>): void {
    this.#settings = { ...this.#settings, ...settings };
    if (settings.bucket !== undefined) this.#bucket = undefined;
    if (settings.faults !== undefined)
      this.#faults = settings.faults.map((fault) => ({
        fault,
        left: fault.times ?? 1,
        passes: fault.after ?? 0,
      }));
  }

  /** From now on no token is accepted. */
  refuse(): void {
    this.#refused = true;
  }

  /** From now on every call fails and quotes what is said here. */
  quote(text: string): void {
    this.#quoting = text;
  }

  /** Tokens that were given out. */
  tokens(): readonly string[] {
    return [...this.#tokens.keys()];
  }

  counts(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { call } of this.calls) counts[call] = (counts[call] ?? 0) + 1;
    return counts;
  }

  /** The answer to a request. Rejects with Dropped, or with the signal's reason. */
  async answer(arrived: Arrived, signal: AbortSignal): Promise<Answer> {
    const url = new URL(arrived.url, this.url);
    const [form, call] = callOf(arrived.method, url, this.objects.bucket);
    const isJson = arrived.headers["content-type"]?.includes("json") === true;
    const body =
      isJson && arrived.body.byteLength > 0 ? JSON.parse(Buffer.from(arrived.body).toString()) : undefined;
    const note = (status: number) =>
      this.calls.push({
        ...{ call, host: url.host, path: url.pathname, status, body },
        query: Object.fromEntries(url.searchParams),
      });
    const fault = this.#fault(call, form);
    try {
      if (fault?.how === "drop") throw new Dropped();
      if (fault?.how === "silence") await silence(signal);
      if (fault?.how === "page") {
        note(fault.status ?? 404);
        return page(fault.status ?? 404);
      }
      if (fault?.how === "refuse")
        throw new Refusal(
          fault.status ?? 503,
          fault.code ?? "internal_error",
          fault.message ?? "It was not to be.",
        );
      this.vpc.tick();
      const answer = this.#served(form, call, url, arrived, body);
      if (fault?.how === "drop-answer") throw new Dropped();
      note(answer.status);
      return changed(answer, fault);
    } catch (error) {
      if (!(error instanceof Refusal || error instanceof BucketRefusal)) {
        note(0);
        throw error;
      }
      note(error.status);
      return error.answer(form);
    }
  }

  #region(): Vpc {
    return new Vpc({
      settings: () => this.#settings,
      now: () => this.#clock.monotonic(),
      url: () => this.url,
      object: (href) =>
        !this.objects.loses &&
        this.objects.objects.has(href.replace(`cos://${REGION}/${this.objects.bucket}/`, "")),
    });
  }

  #served(form: Form, call: string, url: URL, arrived: Arrived, body: Json | undefined): Answer {
    if (form === "login") return this.#login(url, arrived);
    this.#authorize(arrived);
    if (form === "objects")
      return this.objects.answer(
        arrived.method,
        url.pathname,
        url.searchParams,
        arrived.body,
        this.#settings.pageSize,
      );
    this.#take();
    if (url.pathname.startsWith("/v2/")) return this.#controller(call, url, body);
    if (!/^\d{4}-\d\d-\d\d$/.test(url.searchParams.get("version") ?? ""))
      throw new Refusal(
        400,
        "missing_version",
        "The `version` parameter is required, and it must be of the form `YYYY-MM-DD`.",
      );
    if (url.searchParams.get("generation") !== "2")
      throw new Refusal(400, "missing_generation_parameter", "The generation query parameter is required.");
    const wrong = body === undefined ? [] : MODELS.request(call, body);
    if (wrong.length > 0) {
      this.violations.push(...wrong.map((one) => `request ${call}: ${one}`));
      throw new Refusal(400, "invalid_request_field", wrong.join("; "));
    }
    const path = url.pathname.split("/").slice(2).map(decodeURIComponent);
    const isElsewhere = url.host.endsWith(".iaas.cloud.ibm.com") && !url.host.startsWith(`${REGION}.`);
    const [status, value] = (isElsewhere ? this.#elsewhere : this.vpc).answer(
      arrived.method,
      path,
      url.searchParams,
      body,
    );
    if (value !== undefined)
      this.violations.push(...MODELS.answer(call, value).map((one) => `answer of ${call}: ${one}`));
    if (value === undefined) return { status, headers: {}, text: "" };
    const isOld = (url.searchParams.get("version") ?? "") < "2022-03-29";
    return json(status, isOld ? inOldVersion(value) : value);
  }

  /** Resource groups, and instances of services, of which there is the object storage. */
  #controller(call: string, url: URL, body: Json | undefined): Answer {
    const shown = (id: string, name: string) => ({
      id,
      name,
      crn: `crn:v1:bluemix:public:resource-controller::a/${ACCOUNT}::resource-group:${id}`,
      account_id: ACCOUNT,
      state: "ACTIVE",
      default: name === "Default",
    });
    if (call === "GET resource_instances") {
      const crn = `crn:v1:bluemix:public:cloud-object-storage:global:a/${ACCOUNT}:1::`;
      return json(200, {
        rows_count: 1,
        next_url: null,
        resources: [
          {
            id: crn,
            crn,
            guid: "1",
            name: url.searchParams.get("name"),
            resource_id: "dff97f5c",
            type: "service_instance",
            state: "active",
          },
        ],
      });
    }
    const name = url.searchParams.get("name");
    if (call === "GET resource_groups")
      return json(200, {
        resources: [...this.vpc.groups]
          .filter(([, one]) => name === null || one === name)
          .map(([id, one]) => shown(id, one)),
      });
    if (call !== "POST resource_groups")
      throw new Refusal(404, "invalid_route", `The requested route ${call} does not exist`);
    if ([...this.vpc.groups.values()].includes(String(body?.name)))
      throw new Refusal(409, "Conflict", "A resource group with the same name already exists.");
    const { id } = this.vpc.group(String(body?.name));
    return json(201, { id, crn: shown(id, "").crn });
  }

  /** IAM by an API key or the token of a compute resource; the metadata service of a machine. */
  #login({ pathname, searchParams }: URL, { method, headers, body }: Arrived): Answer {
    const form = new URLSearchParams(Buffer.from(body).toString());
    const isMetadata = pathname.startsWith("/instance_identity/");
    if (isMetadata && (searchParams.get("version") ?? "") < "2022-03-01")
      throw new Refusal(400, "missing_version", "version is missing");
    if (pathname.endsWith("/v1/token")) {
      if (method !== "PUT" || headers["metadata-flavor"] !== "ibm")
        throw new Refusal(400, "bad_request", "the header Metadata-Flavor is missing");
      return json(200, {
        access_token: COMPUTE_TOKEN,
        created_at: "2026-11-30T00:00:00Z",
        expires_at: "2026-11-30T00:05:00Z",
        expires_in: 300,
      });
    }
    const grant = form.get("grant_type")?.replace("urn:ibm:params:oauth:grant-type:", "");
    const isKnown = isMetadata
      ? headers.authorization === `Bearer ${COMPUTE_TOKEN}`
      : grant === "apikey"
        ? form.get("apikey") === API_KEY
        : grant === "cr-token" &&
          form.get("cr_token") === COMPUTE_TOKEN &&
          (form.has("profile_id") || form.has("profile_name"));
    if (!isKnown) throw new Refusal(400, "BXNIM0415E", "Provided API key could not be found.");
    const payload = {
      account: { valid: true, bss: this.account },
      exp: Math.floor(this.#clock.now() / 1_000) + LIFE_S,
      iat: Math.floor(this.#clock.now() / 1_000),
      jti: this.#tokens.size,
    };
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const token = `${part({ alg: "RS256" })}.${part(payload)}.${part({ by: "the double" })}`;
    this.#tokens.set(token, this.#clock.now() + LIFE_S * 1_000);
    if (isMetadata)
      return json(200, {
        access_token: token,
        created_at: "2026-11-30T00:00:00Z",
        expires_at: "2026-11-30T01:00:00Z",
        expires_in: LIFE_S,
      });
    return json(200, {
      access_token: token,
      refresh_token: "not_supported",
      token_type: "Bearer",
      expires_in: LIFE_S,
      expiration: payload.exp,
      scope: "ibm openid",
    });
  }

  #authorize({ headers }: Arrived): void {
    const [, token = ""] = /^Bearer (.+)$/.exec(headers.authorization ?? "") ?? [];
    if (this.#quoting !== undefined) throw new Refusal(400, "bad_request", this.#quoting);
    if (this.#refused || !((this.#tokens.get(token) ?? 0) > this.#clock.now()))
      throw new Refusal(401, "not_authorized", "The request is not authorized.");
  }

  #take(): void {
    const { bucket } = this.#settings;
    if (bucket === null) return;
    const [most, perSecond] = bucket;
    const now = this.#clock.monotonic();
    const held = this.#bucket ?? { left: most, at: now };
    const left = Math.min(most, held.left + ((now - held.at) / 1_000) * perSecond);
    this.#bucket = { left: left < 1 ? left : left - 1, at: now };
    if (left < 1) throw new Refusal(429, "too_many_requests", "Too many requests");
  }

  #fault(call: string, form: Form): IbmFault | undefined {
    const found = this.#faults.find(
      ({ fault, left }) => left > 0 && (fault.call === call || (fault.call === "*" && form !== "login")),
    );
    if (found === undefined) return undefined;
    if (found.passes > 0) {
      found.passes--;
      return undefined;
    }
    found.left--;
    return found.fault;
  }
}

type Form = "vpc" | "objects" | "login";

/** Whose form errors have, and the call without ids: `GET instances/*`, `PUT objects/*`. */
function callOf(method: string, { pathname, searchParams }: URL, bucket: string): readonly [Form, string] {
  if (/^\/(identity|instance_identity)\//.test(pathname))
    return ["login", `${method} ${pathname.split("/").at(-1)}`];
  if (pathname.startsWith(`/${bucket}`) || !/^\/v[12]\//.test(pathname)) {
    const what = ["uploads", "uploadId", "location"].find((one) => searchParams.has(one));
    return [
      "objects",
      `${method} objects${pathname.split("/").length > 2 ? "/*" : ""}${what ? `?${what}` : ""}`,
    ];
  }
  const [first = "", ...rest] = pathname.split("/").slice(2);
  return [
    "vpc",
    `${method} ${[first, ...rest.map((one, at) => (at % 2 === 0 && first !== "instance" ? "*" : one))].join("/")}`,
  ];
}

function changed(answer: Answer, fault: IbmFault | undefined): Answer {
  if (fault?.how !== "empty" && fault?.how !== "loop" && fault?.how !== "nowhere") return answer;
  const body = JSON.parse(answer.text) as Json;
  const [list] = Object.entries(body).find(([, value]) => Array.isArray(value)) ?? [];
  const { next: _, ...rest } = body;
  if (fault.how === "empty") return { ...answer, text: JSON.stringify({ ...rest, [list!]: [] }) };
  const href = fault.how === "loop" ? "https://elsewhere.example/v1/instances?start=1" : "/v1/instances";
  return { ...answer, text: JSON.stringify({ ...body, next: { href } }) };
}

/** Before 2022-03-29 a network interface had its address itself (VPC's change log), and images named their owner. */
function inOldVersion(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOldVersion);
  if (typeof value !== "object" || value === null) return value;
  const all = Object.entries(value).map(([key, one]) => [key, inOldVersion(one)]);
  const { primary_ip: ip, visibility } = value as { primary_ip?: { address: string }; visibility?: string };
  return {
    ...Object.fromEntries(all),
    ...(ip && { primary_ipv4_address: ip.address }),
    ...(visibility && { owner_type: visibility === "private" ? "user" : "provider" }),
  };
}
