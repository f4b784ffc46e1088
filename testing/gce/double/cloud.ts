import { createHash } from "node:crypto";
import { type Clock, sleep } from "@nodeyard/runtime";
import { Bucket, BucketRefusal } from "../../bucket.ts";
import { type Answer, type Arrived, Dropped, silence } from "../../double-server.ts";
import { errorInfo, json, missing, PAGE, Refusal } from "./answers.ts";
import { Compute } from "./compute.ts";
import { Discovery, type Named } from "./discovery.ts";
import { DEFAULTS, type GceFault, type GceSettings } from "./settings.ts";
import { type GceSite, SITE } from "./site.ts";

/** A call as it came over the wire. */
export interface GceCall {
  /** `instances.insert`; of Cloud Storage `PUT object?uploadId` and `GET bucket`. */
  readonly call: string;
  readonly path: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
  /** 0: there was no answer. */
  readonly status: number;
}

/** One for all: to compile its schemas takes longer than most tests. */
const DISCOVERY = new Discovery();
const LISTS = /\.(list|aggregatedList)$/;
const OPERATIONS = /Operations\.(get|wait)$/;

/**
 * Google Cloud on the wire: Compute Engine v1, the XML API of Cloud Storage, and what hands out tokens. Every request to Compute Engine and every
 * answer is judged by Google's own discovery document; what does not fit them is a violation, and the request is refused, as Google does.
 */
export class GceCloud {
  readonly compute: Compute;
  readonly storage = new Bucket();
  readonly calls: GceCall[] = [];
  /** What did not fit the discovery documents: of requests, and of the double's own answers. */
  readonly violations: string[] = [];
  readonly site: GceSite;
  /** Its address for links in answers. */
  url = "https://compute.googleapis.com";
  readonly #clock: Clock;
  #settings: GceSettings = DEFAULTS;
  #faults: { fault: GceFault; left: number; passes: number }[] = [];
  readonly #used = new Map<string, { minute: number; count: number }>();
  #refused = false;
  #quoting: string | undefined;
  #tokens = 0;

  constructor(clock: Clock, site: GceSite = SITE) {
    this.#clock = clock;
    this.site = site;
    this.compute = new Compute({
      site,
      url: () => this.url,
      now: () => ({ mono: clock.monotonic(), wall: clock.now() }),
      settings: () => this.#settings,
      object: (source) => {
        const [, key = ""] = source.split(`https://storage.googleapis.com/${this.storage.bucket}/`);
        return this.storage.objects.has(decodeURIComponent(key));
      },
    });
  }

  /** Changes settings; those that are not named stay. */
  set(settings: Partial<GceSettings>): void {
    this.#settings = { ...this.#settings, ...settings };
    if (settings.faults !== undefined)
      this.#faults = settings.faults.map((fault) => ({
        fault,
        left: fault.times ?? 1,
        passes: fault.after ?? 0,
      }));
  }

  /** From now on no token is accepted. With a text, every call fails and quotes it with the token. */
  refuse(quoting?: boolean): void {
    this.#refused = quoting !== true;
    this.#quoting = quoting === true ? "the credential is" : undefined;
  }

  /** Calls by name. */
  counts(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { call } of this.calls) counts[call] = (counts[call] ?? 0) + 1;
    return counts;
  }

  /** The answer to a request. Rejects with Dropped, or with the signal's reason. */
  async answer(arrived: Arrived, signal: AbortSignal): Promise<Answer> {
    const url = new URL(arrived.url, this.url);
    const token = this.#token(url);
    if (token !== undefined) return token;
    if (!url.pathname.startsWith("/compute/")) return this.#stored(url, arrived, signal);
    const named = DISCOVERY.named(arrived.method, url);
    if (named === undefined)
      return new Refusal(404, "notFound", `no method at ${arrived.method} ${url.pathname}`).answer();
    const body = bodyOf(arrived);
    const answer = await this.#judged(named, arrived, body, signal).catch((error: unknown) => {
      this.#log(named.method, named, body, error instanceof Refusal ? error.status : 0);
      if (error instanceof Refusal) return error.answer();
      throw error;
    });
    return answer;
  }

  async #judged(named: Named, arrived: Arrived, body: unknown, signal: AbortSignal): Promise<Answer> {
    this.#authorize(arrived);
    const wrong = DISCOVERY.inRequest(named, body);
    if (wrong.length > 0) {
      this.violations.push(...wrong.map((one) => `request ${named.method}: ${one}`));
      throw new Refusal(400, "badRequest", `Invalid JSON payload received. ${wrong.join("; ")}`);
    }
    const fault = this.#fault(named.method);
    if (fault?.how === "drop") throw new Dropped();
    if (fault?.how === "silence") await silence(signal);
    if (fault?.how === "page") return { ...PAGE, ...(fault.status === 302 && { status: 302, text: "" }) };
    if (fault?.how === "refuse") {
      const { status = 503, reason = "backendError", message = "Backend Error" } = fault;
      const [, path = ""] = new URL(arrived.url, this.url).pathname.split("/compute/v1/");
      if (reason === "notFound" && fault.message === undefined) missing(path);
      throw new Refusal(status, reason, message);
    }
    this.#count(named.method);
    const value = await this.#value(named, body, fault, signal);
    if (fault?.how === "drop-answer") throw new Dropped();
    this.#log(named.method, named, body, 200);
    return value;
  }

  async #value(
    named: Named,
    body: unknown,
    fault: GceFault | undefined,
    signal: AbortSignal,
  ): Promise<Answer> {
    const failing =
      fault?.how === "fail"
        ? { code: fault.reason ?? "INTERNAL_ERROR", message: fault.message ?? "Internal error." }
        : undefined;
    this.compute.tick();
    if (named.method.endsWith("Operations.wait")) await this.#wait(named, signal);
    const value = this.compute.answer(named, body as Record<string, unknown> | undefined, failing);
    // A copy: what goes over the wire does not change afterwards.
    const sent = changed(structuredClone(value), fault);
    this.#judgeAnswer(named, sent);
    return json(200, sent);
  }

  async #wait(named: Named, signal: AbortSignal): Promise<void> {
    const end = this.#clock.monotonic() + this.#settings.waitMs;
    const isDone = () => this.compute.answer(named, undefined, undefined)?.status === "DONE";
    while (!isDone() && this.#clock.monotonic() < end) {
      const next = Math.min(this.compute.next ?? end, end);
      await sleep(this.#clock, Math.max(1, next - this.#clock.monotonic()), signal);
      this.compute.tick();
    }
  }

  #judgeAnswer(named: Named, value: unknown): void {
    const wrong = DISCOVERY.inAnswer(named, value);
    this.violations.push(...wrong.map((one) => `answer of ${named.method}: ${one}`));
  }

  /** What Cloud Storage answers. */
  async #stored(url: URL, arrived: Arrived, signal: AbortSignal): Promise<Answer> {
    const [, bucket, ...key] = url.pathname.split("/");
    const what = ["uploads", "uploadId"].find((one) => url.searchParams.has(one));
    const method = `${arrived.method} ${key.length > 0 ? "object" : "bucket"}${what ? `?${what}` : ""}`;
    const note = (status: number) =>
      this.#log(method, { path: { bucket: String(bucket) }, query: url.searchParams }, undefined, status);
    try {
      this.#authorize(arrived);
      const fault = this.#fault(method);
      if (fault?.how === "drop") throw new Dropped();
      if (fault?.how === "silence") await silence(signal);
      if (fault?.how === "refuse")
        throw new BucketRefusal(
          fault.status ?? 503,
          fault.reason ?? "InternalError",
          fault.message ?? "We encountered an internal error.",
        );
      const { pathname, searchParams } = url;
      const answer = this.storage.answer(arrived.method, pathname, searchParams, arrived.body, 1_000);
      if (fault?.how === "drop-answer") throw new Dropped();
      note(answer.status);
      if (arrived.method !== "PUT") return answer;
      const md5 = createHash("md5").update(arrived.body).digest("base64");
      return { ...answer, headers: { ...answer.headers, "x-goog-hash": `md5=${md5}` } };
    } catch (error) {
      const isRefused = error instanceof Refusal || error instanceof BucketRefusal;
      note(isRefused ? error.status : 0);
      if (isRefused) return error.answer();
      throw error;
    }
  }

  /** What the metadata server and the token endpoint answer. */
  #token(url: URL): Answer | undefined {
    const flavor = { "metadata-flavor": "Google" };
    if (/^\/computeMetadata\/v1\/?(instance\/?)?$/.test(url.pathname))
      return { status: 200, headers: { ...flavor, "content-type": "text/plain" }, text: "service-accounts/" };
    if (url.pathname === "/computeMetadata/v1/project/project-id")
      return { status: 200, headers: { ...flavor, "content-type": "text/plain" }, text: this.site.project };
    const isToken = url.pathname.endsWith("/token");
    const fault = isToken ? this.#fault("token") : undefined;
    if (fault !== undefined) return json(fault.status ?? 503, { error: fault.reason ?? "unavailable" });
    if (!isToken && !url.pathname.startsWith("/computeMetadata/")) return undefined;
    if (!isToken)
      return json(200, { email: "robot@ci-project-1.iam.gserviceaccount.com", scopes: [] }, flavor);
    const access_token = `ya29.token-of-the-double-${++this.#tokens}`;
    const issued = { issued_token_type: "urn:ietf:params:oauth:token-type:access_token" };
    return json(200, { access_token, expires_in: 3_599, token_type: "Bearer", ...issued }, flavor);
  }

  #authorize({ headers }: Arrived): void {
    const [, token] = /^Bearer (.+)$/.exec(headers.authorization ?? "") ?? [];
    if (this.#quoting !== undefined) throw new Refusal(400, "badRequest", `${this.#quoting} ${token}`);
    if (token === undefined || this.#refused)
      throw new Refusal(401, "authError", "Request had invalid authentication credentials.");
  }

  /** Quotas of calls: full again when a minute begins, and 403 in between. */
  #count(method: string): void {
    const kind = OPERATIONS.test(method)
      ? "operations"
      : LISTS.test(method)
        ? "list"
        : /\.get/.test(method)
          ? "read"
          : "write";
    const most = this.#settings.perMinute[kind];
    if (most === undefined) return;
    const minute = Math.floor(this.#clock.now() / 60_000);
    const used = this.#used.get(kind);
    const count = used?.minute === minute ? used.count + 1 : 1;
    this.#used.set(kind, { minute, count });
    if (count <= most) return;
    const message = `Quota exceeded for quota metric 'Requests' and limit 'Requests per minute' of service 'compute.googleapis.com'.`;
    throw new Refusal(403, "rateLimitExceeded", message, [
      errorInfo("RATE_LIMIT_EXCEEDED", { quota_limit: kind }),
    ]);
  }

  #fault(method: string): GceFault | undefined {
    const found = this.#faults.find(
      ({ fault, left }) => left > 0 && (fault.call === method || (fault.call === "*" && method !== "token")),
    );
    if (found === undefined) return undefined;
    if (found.passes > 0) {
      found.passes--;
      return undefined;
    }
    found.left--;
    return found.fault;
  }

  #log(call: string, { path, query }: Pick<Named, "path" | "query">, body: unknown, status: number): void {
    this.calls.push({ call, path, query: Object.fromEntries(query), body, status });
  }
}

function bodyOf({ body, headers }: Arrived): unknown {
  if (body.byteLength === 0) return undefined;
  if (!(headers["content-type"] ?? "").includes("json")) return Buffer.from(body).toString();
  return JSON.parse(Buffer.from(body).toString());
}

function changed(value: Record<string, unknown> | undefined, fault: GceFault | undefined) {
  if (value === undefined || fault === undefined) return value;
  if (fault.how === "empty") return { ...value, items: Array.isArray(value.items) ? [] : {} };
  return fault.how === "unreachable" ? { ...value, unreachables: ["projects/1/zones/us-central1-b"] } : value;
}
