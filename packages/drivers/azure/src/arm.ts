import { createHash } from "node:crypto";
import {
  type Around,
  allPages,
  answeredJson,
  assertStill,
  type BearerToken,
  bearerRequest,
  CallRates,
  grantedToken,
  type HttpAnswer,
  type HttpCalls,
  type HttpRequest,
  jsonIn,
  OddAnswer,
  orderFault,
  orThrow,
  type RequestParts,
  retryAfter,
  Session,
  type SessionHost,
  sleep,
  type Unsent,
  unlessRefused,
  wasRefused,
} from "@nodeyard/driver";
import { failed, faultIn, MISSING, mapError } from "./errors.ts";
import { type Identity, identityOf, tokenRequest } from "./identity.ts";
import { keyOf } from "./resources.ts";

/** Versions of the API by service and type of resource, in lower case, as ids come in any. */
const VERSIONS: Readonly<Record<string, string>> = {
  "microsoft.compute": "2025-04-01",
  "microsoft.compute/disks": "2025-01-02",
  "microsoft.compute/skus": "2021-07-01",
  "microsoft.network": "2024-05-01",
};
/** Pause between two looks at an operation that names none, milliseconds. */
const POLL_MS = 2_000;
/** With so few calls left before Azure refuses them, they slow down. */
const FEW = 2;

/** What the connection to a subscription is made of. */
export interface ArmOptions extends SessionHost {
  readonly around: Around;
  readonly authPath: string | null;
  /** Whose subscription it is. A replaced credential is used from the next login on, for the same subscription. */
  readonly identity: Identity;
}

type Query = Readonly<Record<string, string>>;
type Extra = Omit<RequestParts, "query"> & { readonly query?: Query; readonly first?: boolean };

/**
 * The resource manager of one subscription. Paths are ids, or begin below the subscription ("/resourceGroups/..."). The limiter is that of
 * changes, which Azure counts apart from reads.
 */
export class Arm extends Session<BearerToken> {
  readonly #rates: CallRates;
  readonly #options: ArmOptions;
  readonly #readCalls: HttpCalls<BearerToken>;
  readonly #pageCalls: HttpCalls<BearerToken>;

  constructor(options: ArmOptions) {
    const { clock, around, authPath, identity } = options;
    const rates = new CallRates(clock);
    super({
      ...{ ...options, fault: faultIn, by: "Azure's login", limiter: rates.writes },
      async signIn(ask) {
        const now = identityOf(authPath, around);
        for (const key of ["subscription", "resourceManager"] as const) assertStill(identity[key], now[key]);
        return grantedToken(ask, tokenRequest(now, around), faultIn, clock.now());
      },
      endOf: ({ end }) => end,
    });
    this.#options = options;
    this.#rates = rates;
    this.#readCalls = this.callsAt(rates.reads);
    // Azure counts writes to a disk by the disk.
    this.#pageCalls = this.callsAt(rates.data);
  }

  override limit(intervalMs: number): void {
    this.#rates.limit(intervalMs);
  }

  /** One resource, or an answer of another form; undefined: there is none. */
  async get<T>(path: string, signal: AbortSignal, query: Query = {}): Promise<T | undefined> {
    const call = this.#call("GET", path, signal, { query }, answeredJson<T & object>);
    return unlessRefused(call, ...MISSING);
  }

  /** All pages of a list. */
  async list<T>(path: string, signal: AbortSignal, query: Query = {}): Promise<readonly T[]> {
    const pages = await allPages(
      `GET ${path}`,
      async (next = path) => {
        type Page = { readonly value?: readonly T[]; readonly nextLink?: string };
        const page = await this.#call("GET", next, signal, { query, first: true }, answeredJson<Page>);
        // An empty list in place of an answer that is none would look like a group without machines.
        if (!Array.isArray(page.value)) throw new OddAnswer(`GET ${path} was answered without a list`);
        return page;
      },
      ({ nextLink }) => nextLink,
    );
    return pages.flatMap(({ value = [] }) => value);
  }

  /** Makes a resource; resolves when Azure has accepted it. One that is there stays as it is: a repeated request changes nothing. */
  async make(path: string, body: object, signal: AbortSignal): Promise<void> {
    try {
      await this.#call("PUT", path, signal, { body, headers: { "if-none-match": "*" } });
    } catch (error) {
      if (!wasRefused(error, 412)) throw orderFault(error, mapError);
    }
  }

  /** Deletes a resource; resolves when Azure has accepted it. One that is missing is no error. */
  async delete(path: string, signal: AbortSignal): Promise<void> {
    await unlessRefused(this.#call("DELETE", path, signal), ...MISSING);
  }

  /** Deletes a resource, and waits for its end. One that is missing is no error. */
  async gone(path: string, signal: AbortSignal): Promise<void> {
    await unlessRefused(this.whole("DELETE", path, undefined, signal), ...MISSING);
  }

  /** Writes pages of a disk. `url`: with a signature, so that no token is sent. */
  async putPages(
    url: string,
    { start, bytes }: { readonly start: number; readonly bytes: Uint8Array },
    signal: AbortSignal,
  ): Promise<void> {
    const headers = {
      ...{ "x-ms-blob-type": "PageBlob", "x-ms-page-write": "Update", "x-ms-version": "2019-12-12" },
      range: `bytes=${start}-${start + bytes.byteLength - 1}`,
      "content-length": String(bytes.byteLength),
      "content-md5": createHash("md5").update(bytes).digest("base64"),
    };
    const request = () => ({ method: "PUT" as const, url: `${url}&comp=page`, headers, body: bytes });
    await this.#pageCalls.call({ operation: "blob.PUT.pages", request, signal }, () => {});
  }

  /** A request whose operation is followed to its end. Resolves to what it returns; undefined when that is nothing. */
  async whole<T>(
    method: "PUT" | "POST" | "DELETE",
    path: string,
    body: object | undefined,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    let answer = await this.#call(method, path, signal, body && { body });
    const { "azure-asyncoperation": status, location } = answer.headers;
    const at = status ?? location;
    while (at !== undefined) {
      // Of both headers the first one has a body with the state; at the other one, 202 means that it goes on.
      const { status: state, error, properties } = jsonIn(answer.text);
      if (state === "Failed" || state === "Canceled") throw failed(`${method} ${path}`, error);
      const done = state === "Succeeded" || (status === undefined && answer.status !== 202);
      if (done) return (properties as { output?: T } | undefined)?.output;
      await sleep(this.#options.clock, retryAfter(answer, this.#options.clock.now()) ?? POLL_MS, signal);
      answer = await this.#call("GET", at, signal);
    }
    return undefined;
  }

  #call<R = HttpAnswer>(
    method: HttpRequest["method"],
    path: string,
    signal: AbortSignal,
    { query = {}, first = false, ...parts }: Extra = {},
    read: (answer: HttpAnswer, request: Unsent) => R = (answer) => answer as R,
  ): Promise<R> {
    const request = ({ text }: BearerToken) =>
      bearerRequest(method, urlOf(path, query, this.#options.identity), text, parts);
    const [calls, limiter] =
      method === "GET" ? [this.#readCalls, this.#rates.reads] : [this.calls, this.limiter];
    return calls.call({ operation: operationOf(method, path), request, signal, first }, (answer, sent) => {
      if (isNearlyUsedUp(answer)) limiter.refused(0);
      return read(answer, sent);
    });
  }
}

/** Links come from Azure, too, and the token goes where they point. */
function urlOf(path: string, query: Query, { resourceManager, subscription }: Identity): string {
  if (/^https?:/.test(path)) {
    const [to, azure] = [new URL(path), new URL(resourceManager)];
    // A region has a host below the cloud's.
    const isAzure = to.host === azure.host || to.host.endsWith(`.${azure.host}`);
    if (isAzure && to.protocol === azure.protocol) return path;
    throw new OddAnswer(`a link leads to ${to.origin}, and not to Azure`);
  }
  const [, service = "", type = ""] = /\/providers\/([\w.]+)\/(\w+)/.exec(keyOf(path)) ?? [];
  const known = VERSIONS[`${service}/${type}`] ?? VERSIONS[service];
  const version = orThrow(known, `${path} is of no known service`);
  const words = new URLSearchParams({ "api-version": version, ...query });
  const root = keyOf(path).startsWith("/subscriptions/") ? "" : `/subscriptions/${subscription}`;
  return `${resourceManager}${root}${path}?${words}`;
}

/** Service, method and types, without names: `compute.GET.virtualMachines`. */
function operationOf(method: string, path: string): string {
  const [, service = "resources", rest = ""] = /\/providers\/Microsoft\.(\w+)\/([^?]*)/i.exec(path) ?? [];
  return [service.toLowerCase(), method, ...rest.split("/").filter((_, at) => at % 2 === 0)].join(".");
}

/** Azure says how many calls are left: of the subscription, and of a kind ("Microsoft.Compute/PutVM3Min;107,..."). */
function isNearlyUsedUp({ headers }: HttpAnswer): boolean {
  return Object.entries(headers).some(
    ([name, value]) =>
      name.startsWith("x-ms-ratelimit-remaining-") &&
      value.split(",").some((one) => Number(one.split(";").at(-1)) <= FEW),
  );
}
