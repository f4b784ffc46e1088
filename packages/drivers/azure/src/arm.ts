import { createHash } from "node:crypto";
import {
  type ApiCall,
  ApiError,
  allPages,
  CallRates,
  type Clock,
  CloudConfigError,
  callText,
  DriverError,
  type HttpAnswer,
  type HttpCalls,
  type HttpRequest,
  jsonIn,
  OddAnswer,
  type Random,
  retryAfter,
  Session,
  sleep,
  type Unsent,
  unlessRefused,
  type Wire,
  wasRefused,
} from "@nodeyard/driver";
import { failed, faultIn, jsonOf, MISSING } from "./errors.ts";
import { type Around, type Identity, identityOf, tokenRequest } from "./identity.ts";
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

interface Token {
  readonly text: string;
  /** Wall time of its end, milliseconds. */
  readonly end: number;
}

/** What the connection to a subscription is made of. */
export interface ArmOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly wire: Wire;
  readonly around: Around;
  readonly authPath: string | null;
  /** Whose subscription it is. A replaced credential is used from the next login on, for the same subscription. */
  readonly identity: Identity;
  readonly observe: ((call: ApiCall) => void) | undefined;
}

type Query = Readonly<Record<string, string>>;
type Extra = Partial<{ body: object; query: Query; headers: Query; first: boolean }>;

/**
 * The resource manager of one subscription. Paths are ids, or begin below the subscription ("/resourceGroups/..."). The limiter is that of
 * changes, which Azure counts apart from reads.
 */
export class Arm extends Session<Token> {
  readonly #rates: CallRates;
  readonly #options: ArmOptions;
  readonly #readCalls: HttpCalls<Token>;
  readonly #pageCalls: HttpCalls<Token>;

  constructor(options: ArmOptions) {
    const { clock, random, wire } = options;
    const rates = new CallRates(clock);
    super({
      ...{ clock, random, fault: faultIn, by: "Azure's login" },
      send: (request) => wire.send(request),
      signIn: (ask) => logIn(options, ask),
      endOf: ({ end }) => end,
      secretsOf: ({ text }) => [text],
      close: () => wire.close(),
      limiter: rates.writes,
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
    const answer = await unlessRefused(this.#call("GET", path, signal, { query }), ...MISSING);
    return answer && jsonOf<T>(answer);
  }

  /** All pages of a list. */
  async list<T>(path: string, signal: AbortSignal, query: Query = {}): Promise<readonly T[]> {
    const pages = await allPages(
      `GET ${path}`,
      async (next = path) => {
        const answer = await this.#call("GET", next, signal, { query, first: true });
        const page = jsonOf<{ value?: readonly T[]; nextLink?: string }>(answer);
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
    } catch (cause) {
      // What is missing is an image or another thing that the body names.
      if (wasRefused(cause, ...MISSING)) throw new DriverError("configuration", cause.message, { cause });
      if (!wasRefused(cause, 412)) throw cause;
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
    const { observe } = this.#options;
    await this.#pageCalls.call({ operation: "blob.PUT.pages", request, signal, observe }, () => {});
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

  async #call(
    method: HttpRequest["method"],
    path: string,
    signal: AbortSignal,
    { body, query = {}, headers, first = false }: Extra = {},
  ): Promise<HttpAnswer> {
    signal.throwIfAborted();
    const request = ({ text }: Token): Unsent => ({
      method,
      url: urlOf(path, query, this.#options.identity),
      headers: {
        authorization: `Bearer ${text}`,
        accept: "application/json",
        ...(body !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const { observe } = this.#options;
    const [calls, limiter] =
      method === "GET" ? [this.#readCalls, this.#rates.reads] : [this.calls, this.limiter];
    const call = { operation: operationOf(method, path), request, signal, first, observe };
    return calls.call(call, (answer) => {
      if (isNearlyUsedUp(answer)) limiter.refused(0);
      return answer;
    });
  }
}

async function logIn(
  { clock, around, authPath, identity: opened }: ArmOptions,
  ask: (request: Unsent) => Promise<HttpAnswer>,
): Promise<Token> {
  const identity = identityOf(authPath, around);
  // Its lists would lack the machines that are there, as if somebody had deleted them.
  for (const key of ["subscription", "resourceManager"] as const)
    if (keyOf(identity[key]) !== keyOf(opened[key]))
      throw new CloudConfigError(
        `the credentials are for ${identity[key]} now, and the provider for ${opened[key]}; give it another name, or change them back`,
      );
  const request = tokenRequest(identity, around);
  const answer = await ask(request);
  if (answer.status >= 500 || answer.status === 429)
    throw new ApiError(callText(request), answer, faultIn(answer));
  const { access_token: text, expires_in, expires_on } = jsonIn(answer.text);
  if (answer.status !== 200 || typeof text !== "string")
    throw new CloudConfigError(`no token: ${faultIn(answer).text ?? answer.status}; check the credentials`);
  const seconds = Number(expires_in);
  const end = seconds > 0 ? clock.now() + seconds * 1_000 : Number(expires_on) * 1_000;
  return { text, end };
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
  const version = VERSIONS[`${service}/${type}`] ?? VERSIONS[service];
  if (version === undefined) throw new DriverError("configuration", `${path} is of no known service`);
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
