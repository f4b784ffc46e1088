import {
  type Around,
  allPages,
  answeredJson,
  assertStill,
  bearerRequest,
  type HttpCalls,
  OddAnswer,
  orderFault,
  RateLimiter,
  type RequestParts,
  Session,
  type SessionHost,
  safely,
  type Unsent,
  unlessRefused,
} from "@nodeyard/driver";
import { faultOf, IN_USE, mapError } from "./errors.ts";
import type { Named } from "./names.ts";
import { type Login, signIn } from "./sign-in.ts";

/** Version of the VPC API: what its answers look like. */
const VERSION = { version: "2026-10-06", generation: "2" };
const PAGE = "100";

/** What a session with IBM Cloud consists of. */
export interface IbmOptions extends SessionHost {
  readonly around: Around;
  /** File of credentials; null: the environment has them. */
  readonly file: string | null;
  readonly region: string;
}

/** What few calls have. `of`: the service, that of resource groups in place of the VPC API. */
interface Extra extends RequestParts {
  readonly first?: boolean;
  readonly of?: "vpc" | "groups";
}

/**
 * One credential in a region. Every call may be repeated: what makes something gives it a name that no other has. Rejects with ApiError,
 * NoAnswer, OddAnswer, CloudConfigError, or the signal's reason.
 */
export class Ibm extends Session<Login> {
  /** Calls of object storage, which counts them apart. */
  readonly objects: HttpCalls<Login>;
  #opened: Login | undefined;

  constructor(options: IbmOptions) {
    const { clock, random } = options;
    super({
      ...{ ...options, by: "IBM Cloud", fault: faultOf },
      signIn: async (ask) => this.#sameAccount(await signIn(ask, { ...options, now: clock.now() })),
      endOf: ({ end }) => end,
      again: (limiter) => safely(clock, random, limiter, () => true),
    });
    this.objects = this.callsAt(new RateLimiter({ clock, intervalMs: 0 }));
  }

  /** The account that the token names. Null: the token names none; undefined: there is no token yet. */
  get account(): string | null | undefined {
    return this.#opened?.account;
  }

  /** Calls an API by a path such as `/instances`. Undefined: the answer to a deletion has no body. */
  call<T>(method: Unsent["method"], path: string, signal: AbortSignal, parts: Extra = {}): Promise<T> {
    const { query: asked = {}, body, first = false, of = "vpc" } = parts;
    const query = of === "vpc" ? { ...VERSION, ...asked } : asked;
    const headers = method === "PATCH" ? { "content-type": "application/merge-patch+json" } : {};
    const request = (login: Login) =>
      bearerRequest(method, `${login[of]}${path}`, login.text, { query, body, headers });
    const operation = `${of}.${method}.${path.split("/")[1]}`;
    return this.calls.call({ operation, signal, first, request }, (answer, sent) =>
      answer.text === "" && method === "DELETE" ? (undefined as T) : (answeredJson(answer, sent) as T),
    );
  }

  /**
   * Reads, changes or deletes one thing of a list, such as `instances`; undefined: IBM says that the thing itself is not there, or the answer
   * to a deletion. Something in between says so of anything, and IBM of what the thing is in.
   */
  one<T>(method: Unsent["method"], key: string, id: string, signal: AbortSignal, body?: object) {
    const kind = key.replace("/", "_").replace(/s$/, "");
    const answer = this.call<T>(method, `/${key}/${encodeURIComponent(id)}`, signal, { body });
    return unlessRefused(answer, new RegExp(`^(${kind}_)?not_found$`));
  }

  /** Makes one thing of a list. Undefined: its name is in use, by an earlier try whose answer was lost, or by another process. */
  async make<T>(key: string, body: object, signal: AbortSignal): Promise<T | undefined> {
    try {
      return await unlessRefused(this.call<T>("POST", `/${key}`, signal, { body }), IN_USE);
    } catch (error) {
      throw orderFault(error, mapError);
    }
  }

  /** All items of a list. Of the address of a next page only its start counts: the token goes nowhere else. */
  async list<T>(key: string, signal: AbortSignal, query: RequestParts["query"] = {}): Promise<readonly T[]> {
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

  /** The one of a list that has a name: names are unique. */
  async named<T extends Named>(key: string, name: string, signal: AbortSignal) {
    return (await this.list<T>(key, signal, { name })).find((one) => one.name === name);
  }

  #sameAccount(login: Login): Login {
    this.#opened ??= login;
    assertStill(this.#opened.vpc, login.vpc);
    // The first token may not have named it.
    if (this.#opened.account === null) this.#opened = login;
    assertStill(`account ${this.#opened.account}`, `account ${login.account}`);
    return login;
  }
}
