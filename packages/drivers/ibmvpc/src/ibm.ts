import {
  type ApiCall,
  allPages,
  type Clock,
  CloudConfigError,
  callText,
  type HttpCalls,
  OddAnswer,
  pageText,
  type Random,
  RateLimiter,
  Session,
  safely,
  type Unsent,
  type Wire,
} from "@nodeyard/driver";
import { faultOf, unlessMissing } from "./errors.ts";
import { type Around, type Login, signIn } from "./sign-in.ts";

/** Version of the VPC API: what its answers look like. */
const VERSION = { version: "2026-10-06", generation: "2" };
const PAGE = "100";

/** What a session with IBM Cloud consists of. */
export interface IbmOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly wire: Pick<Wire, "send" | "close">;
  readonly around: Around;
  /** File of credentials; null: the environment has them. */
  readonly file: string | null;
  readonly region: string;
  readonly observe: ((call: ApiCall) => void) | undefined;
}

type Query = Readonly<Record<string, string>>;
type Extra = Partial<{ readonly query: Query; readonly body: object; readonly first: boolean }>;
type Method = Unsent["method"];

/**
 * One credential in a region. Every call may be repeated: what makes something gives it a name that no other has. Rejects with ApiError,
 * NoAnswer, OddAnswer, CloudConfigError, or the signal's reason.
 */
export class Ibm extends Session<Login> {
  readonly #observe: IbmOptions["observe"];
  readonly #objects: HttpCalls<Login>;
  /** The account of the token; null: it does not name it. Undefined: nobody signed in yet. */
  account: string | null | undefined;
  #vpc: string | undefined;

  constructor({ clock, random, wire, observe, ...who }: IbmOptions) {
    super({
      ...{ clock, random, by: "IBM Cloud", fault: faultOf, close: () => wire.close() },
      send: (request) => wire.send(request),
      signIn: async (ask) => this.#sameAccount(await signIn(ask, { ...who, now: () => clock.now() })),
      endOf: ({ end }) => end,
      secretsOf: ({ text }) => [text],
      again: (limiter) => {
        const again = safely(clock, random, limiter);
        return (tried) => again({ ...tried, request: tried.request && { ...tried.request, method: "PUT" } });
      },
    });
    this.#observe = observe;
    // Object storage counts its calls apart.
    this.#objects = this.callsAt(new RateLimiter({ clock, intervalMs: 0 }));
  }

  /** Calls the VPC API, by a path such as `/instances`, or that of resource groups. Undefined: the answer to a deletion has no body. */
  call<T>(
    method: Method,
    path: string,
    signal: AbortSignal,
    extra: Extra = {},
    of: "vpc" | "groups" = "vpc",
  ): Promise<T> {
    const { query = {}, body, first = false } = extra;
    const words = new URLSearchParams(of === "vpc" ? { ...VERSION, ...query } : query);
    const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    const operation = `${of}.${method}.${path.split("/")[1]}`;
    const request = (login: Login): Unsent => ({
      ...{ method, url: `${login[of]}${path}?${words}` },
      headers: { authorization: `Bearer ${login.text}`, accept: "application/json", "content-type": type },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return this.calls.call({ operation, signal, first, observe: this.#observe, request }, (answer, sent) => {
      if (answer.text === "" && method === "DELETE") return undefined as T;
      const value = jsonOf(answer.text);
      if (value !== undefined) return value as T;
      const by = pageText(sent, answer);
      throw new OddAnswer(`${callText(sent)}: the answer ${answer.status}${by} is no JSON of IBM's`);
    });
  }

  /** Reads one thing; undefined: it is not there. `kind`: how IBM calls it, as in `instance`. */
  read<T>(kind: string, path: string, signal: AbortSignal): Promise<T | undefined> {
    return unlessMissing(this.call<T>("GET", path, signal), kind);
  }

  /** Deletes one thing. One that is not there is no error. */
  async delete(kind: string, path: string, signal: AbortSignal): Promise<void> {
    await unlessMissing(this.call("DELETE", path, signal), kind);
  }

  /** All items of a list. Of the address of a next page only its start counts: the token goes nowhere else. */
  async list<T>(key: string, signal: AbortSignal, query: Query = {}): Promise<readonly T[]> {
    type Page = { readonly [key: string]: unknown; readonly next?: { readonly href?: string } | null };
    const pages = await allPages(
      `GET /${key}`,
      async (start) => {
        const asked = { limit: PAGE, ...query, ...(start !== undefined && { start }) };
        const page = await this.call<Page>("GET", `/${key}`, signal, { query: asked, first: true });
        // An empty list in place of an answer that is none would look like a region without machines.
        if (!Array.isArray(page[key])) throw new OddAnswer(`GET /${key} was answered without a list`);
        return page;
      },
      ({ next }) => {
        if (next == null) return undefined;
        // A gateway may have written its own address, or none, before it.
        const more = URL.parse(next.href ?? "", "https://vpc")?.searchParams.get("start");
        if (more) return more;
        throw new OddAnswer(`GET /${key} says that more follows, and not from where`);
      },
    );
    return pages.flatMap((page) => page[key] as readonly T[]);
  }

  /** Those of a list that have a name; names are unique. */
  async named<T extends { readonly name: string }>(
    key: string,
    name: string,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    return (await this.list<T>(key, signal, { name })).find((one) => one.name === name);
  }

  /** Calls an object storage at its own address, and resolves to the text of the answer and its mark. */
  object(method: Method, url: string, query: Query, signal: AbortSignal, body?: Unsent["body"]) {
    const words = new URLSearchParams(query);
    const request = ({ text }: Login): Unsent => ({
      ...{ method, url: words.size === 0 ? url : `${url}?${words}`, ...(body !== undefined && { body }) },
      headers: { authorization: `Bearer ${text}` },
    });
    const call = { operation: `objects.${method}`, request, signal, observe: this.#observe };
    return this.#objects.call(call, ({ text, headers }) => ({ text, mark: headers.etag ?? "" }));
  }

  /** Lists of another account or region would lack the machines that are there, as if somebody had deleted them. */
  #sameAccount(login: Login): Login {
    this.account ??= login.account;
    this.#vpc ??= login.vpc;
    if (login.vpc !== this.#vpc)
      throw new CloudConfigError(
        `the credentials name ${login.vpc} now, and the provider is at ${this.#vpc}; give it another name, or change them back`,
      );
    if (login.account === this.account) return login;
    throw new CloudConfigError(
      `the credentials are for account ${login.account} now, and the provider for ${this.account}; give it another name, or change them back`,
    );
  }
}

function jsonOf(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
