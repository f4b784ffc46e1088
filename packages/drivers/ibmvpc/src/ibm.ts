import {
  type Account,
  type ApiCall,
  type Clock,
  CloudConfigError,
  callText,
  HttpCalls,
  NoAnswer,
  OddAnswer,
  pageText,
  type Random,
  RateLimiter,
  RenewedValue,
  safeRetry,
  type Unsent,
  type Wire,
} from "@nodeyard/driver";
import { faultOf, unlessMissing } from "./errors.ts";
import { type Around, type Login, signIn } from "./sign-in.ts";

/** Version of the VPC API: what its answers look like. */
const VERSION = { version: "2026-10-06", generation: "2" };
const PAGE = 100;
const MOST_PAGES = 10_000;
const LOGIN_MS = 30_000;

/** What a session with IBM Cloud consists of. */
export interface IbmOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly wire: Pick<Wire, "send" | "close">;
  readonly around: Around;
  readonly credentialsFile: string | null;
  readonly region: string;
  readonly observe: ((call: ApiCall) => void) | undefined;
}

type Query = Readonly<Record<string, string>>;
type Extra = Partial<{ readonly query: Query; readonly body: object; readonly first: boolean }>;

/**
 * One credential in a region: its token, connections and rate limit. Every call may be repeated: what makes something gives it a name that no other has.
 * Rejects with ApiError, NoAnswer, OddAnswer, CloudConfigError, or the signal's reason.
 */
export class Ibm implements Account {
  readonly limiter: RateLimiter;
  readonly #options: IbmOptions;
  readonly #logins: RenewedValue<Login>;
  readonly #calls: HttpCalls<Login>;
  readonly #objects: HttpCalls<Login>;
  #account: string | null | undefined;

  constructor(options: IbmOptions) {
    const { clock, random, wire, around, credentialsFile: file, region } = options;
    this.#options = options;
    // `SharedAccounts` sets the interval right after this.
    this.limiter = new RateLimiter({ clock, intervalMs: 0 });
    this.#logins = new RenewedValue({
      clock,
      load: async (signal) =>
        this.#sameAccount(
          await signIn({ file, region, around, now: () => clock.now(), send: wire.send }, signal),
        ),
      endOf: ({ end }) => end,
      secretsOf: ({ text }) => [text],
      loadMs: LOGIN_MS,
      late: () => new NoAnswer(`no token of IBM Cloud within ${LOGIN_MS} ms`),
    });
    const callsAt = (limiter: RateLimiter) =>
      new HttpCalls<Login>({
        ...{ clock, limiter, fault: faultOf, send: (request) => wire.send(request) },
        login: (signal) => this.#logins.get(signal),
        refused: (login) => this.#logins.replace(login),
        again: ({ attempt, request, answer }) => {
          if (request === undefined) return null;
          const repeatable = { attempt, answer, request: { ...request, method: "PUT" as const } };
          const { retryMs, overloaded } = safeRetry(repeatable, clock.now(), random);
          if (overloaded) limiter.refused(retryMs ?? 0);
          return retryMs;
        },
      });
    this.#calls = callsAt(this.limiter);
    // Object storage counts its calls apart.
    this.#objects = callsAt(new RateLimiter({ clock, intervalMs: 0 }));
  }

  /** The account of the token; null: the token does not name it. Undefined: nobody signed in yet. */
  get account(): string | null | undefined {
    return this.#account;
  }

  /** Calls the VPC API, by a path such as `/instances`. Undefined: the answer has no body. */
  call<T>(method: Unsent["method"], path: string, signal: AbortSignal, extra: Extra = {}): Promise<T> {
    return this.#json("vpc", method, path, signal, extra);
  }

  /** Reads one thing; undefined: it is not there. `kind`: how IBM calls it, as in `instance`. */
  read<T>(kind: string, path: string, signal: AbortSignal): Promise<T | undefined> {
    return unlessMissing(this.call<T>("GET", path, signal), kind);
  }

  /** Deletes one thing. One that is not there is no error. */
  async delete(kind: string, path: string, signal: AbortSignal): Promise<void> {
    await unlessMissing(this.call("DELETE", path, signal), kind);
  }

  /** All items of a list, page by page. Of the address of the next page only the start counts: the token goes nowhere else. */
  async list<T>(path: string, signal: AbortSignal, query: Query = {}): Promise<readonly T[]> {
    const key = path.slice(path.lastIndexOf("/") + 1);
    const all: T[] = [];
    const seen = new Set<string>();
    for (let start = {}; ; ) {
      const asked = { limit: String(PAGE), ...query, ...start };
      const page = await this.call<Record<string, unknown>>("GET", path, signal, {
        query: asked,
        first: true,
      });
      const items = page[key];
      // An empty list in place of an answer that is none would look like a region without machines.
      if (!Array.isArray(items)) throw new OddAnswer(`GET ${path} was answered without ${key}`);
      all.push(...(items as readonly T[]));
      const { href } = (page.next ?? {}) as { readonly href?: string };
      if (href === undefined) return all;
      const next = URL.parse(href)?.searchParams.get("start");
      if (!next || seen.has(next) || seen.size >= MOST_PAGES)
        throw new OddAnswer(`GET ${path}: the pages have no end`);
      seen.add(next);
      start = { start: next };
    }
  }

  /** Calls the API of resource groups. */
  groups<T>(method: "GET" | "POST", signal: AbortSignal, extra: Extra): Promise<T> {
    return this.#json("groups", method, "/v2/resource_groups", signal, extra);
  }

  /** Calls an object storage at its own address, and resolves to the text of the answer and its mark. */
  object(unsent: Omit<Unsent, "headers"> & { readonly query: Query }, signal: AbortSignal) {
    const { query, ...rest } = unsent;
    const words = new URLSearchParams(query);
    const call = {
      ...{ operation: `objects.${rest.method}`, signal, observe: this.#options.observe },
      request: ({ text }: Login): Unsent => ({
        ...rest,
        url: words.size === 0 ? rest.url : `${rest.url}?${words}`,
        headers: {
          authorization: `Bearer ${text}`,
          ...(rest.body instanceof Uint8Array && { "content-length": String(rest.body.byteLength) }),
        },
      }),
    };
    return this.#objects.call(call, ({ text, headers }) => ({ text, mark: headers.etag ?? "" }));
  }

  limit(intervalMs: number): void {
    this.limiter.configure(intervalMs);
  }

  close(): Promise<void> {
    this.#logins.close(new NoAnswer(`region ${this.#options.region} is not used any more`));
    return this.#options.wire.close();
  }

  #json<T>(
    service: "vpc" | "groups",
    method: Unsent["method"],
    path: string,
    signal: AbortSignal,
    { query = {}, body, first = false }: Extra,
  ): Promise<T> {
    const words = new URLSearchParams(service === "vpc" ? { ...VERSION, ...query } : query);
    const [, kind = ""] = path.split("/");
    const call = {
      ...{ operation: `${service}.${method}.${kind}`, signal, first, observe: this.#options.observe },
      request: (login: Login): Unsent => ({
        method,
        url: `${login[service]}${path}?${words}`,
        headers: {
          authorization: `Bearer ${login.text}`,
          accept: "application/json",
          ...(body !== undefined && {
            "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json",
          }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    };
    return this.#calls.call(call, (answer, request) => {
      if (answer.text === "" && method === "DELETE") return undefined as T;
      try {
        const value: unknown = JSON.parse(answer.text);
        if (typeof value === "object" && value !== null) return value as T;
      } catch {
        // Said below.
      }
      const by = pageText(request, answer);
      throw new OddAnswer(`${callText(request)}: the answer ${answer.status}${by} is no JSON of IBM's`);
    });
  }

  /** Lists of another account would lack the machines that are there, as if somebody had deleted them. */
  #sameAccount(login: Login): Login {
    this.#account ??= login.account;
    if (login.account === this.#account) return login;
    throw new CloudConfigError(
      `the credentials are for account ${login.account} now, and the provider for ${this.#account}; give it another name, or change them back`,
    );
  }
}
