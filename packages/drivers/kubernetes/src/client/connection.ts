import {
  ApiError,
  allPages,
  Connections,
  type DriverContext,
  type FailedTry,
  type HttpRequest,
  isCertificateError,
  jsonRequest,
  NoAnswer,
  noAnswer,
  pageText,
  Session,
  type Unsent,
  type Wire,
  wasRefused,
} from "@nodeyard/driver";
import { backoff, defined, present } from "@nodeyard/runtime";
import type { PodSpec, PodStatus } from "kubernetes-types/core/v1.d.ts";
import type { ListMeta, ObjectMeta } from "kubernetes-types/meta/v1.d.ts";
import { statusFault } from "../errors.ts";
import type { Access, Route } from "./kubeconfig.ts";

/** `observe` is called after each try of a call, whose operation is kind and method: `pods.GET`. */
export interface ConnectionOptions extends Pick<DriverContext, "clock" | "random" | "observe"> {
  /** Reads the credentials again. */
  readonly resolve: (signal: AbortSignal) => Promise<Access>;
  /** Makes the connections of a route. Called again when the route changes. */
  readonly connect: (route: Route) => Wire;
}

/** Content of a call. `path` has no query. */
export interface Call {
  readonly path: string;
  /** Parameters, not yet encoded. */
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. Deletions have one, too (DeleteOptions). */
  readonly body?: object;
  /** Ends the call, its retries and its pauses with the signal's reason. */
  readonly signal: AbortSignal;
}

/** Milliseconds for reading the credentials. One try of a call has as many: the API server's own request timeout. */
const LOAD_MS = 60_000;
/** Milliseconds in which a restarting API server is available again. Longer outages end the call with an error. */
const OUTAGE_MS = 45_000;
/** Longest pause between two attempts, milliseconds. */
const SLOWEST_MS = 5_000;
/** Milliseconds during which a 403 is retried after an outage: a new API server refuses calls until it has loaded all roles. */
const RECENT_MS = 20_000;
/** HTTP statuses after which a call is repeated. The driver chooses all names, so that a repeated POST gets "AlreadyExists". */
const AGAIN = [408, 429, 500, 502, 503, 504];

/**
 * Calls to one API server with one credential, which is renewed when necessary. `get`, `post` and `delete` retry interrupted calls for
 * OUTAGE_MS. They reject with ApiError, NoAnswer, CloudConfigError (no credential), or the signal's reason. There is no rate limit: an API server
 * answers 429 when there are too many calls, and the connection then waits.
 */
export class Connection extends Session<Access> {
  readonly #options: ConnectionOptions;
  readonly #connections: Connections<Route, Wire>;
  #isClosed = false;
  /** Monotonic time at which the server was last unavailable. */
  #outage = Number.NEGATIVE_INFINITY;

  constructor(options: ConnectionOptions) {
    const { resolve, connect, ...context } = options;
    const connections = new Connections(connect);
    super({
      ...{ ...context, fault: statusFault, by: "the kubeconfig's credential plugin", signInMs: LOAD_MS },
      send: (request, access) => connections.of(access!.route).send(request),
      close: () => connections.close(),
      signIn: (_, signal) => resolve(signal),
      // Without the name of the scheme, by which other messages would be spoilt.
      secretsOf: ({ authorization, route }) => [authorization?.split(" ")[1], route.key],
      endOf: ({ expires }) => expires,
      again: () => (failed) => this.#again(failed),
    });
    this.#options = options;
    this.#connections = connections;
  }

  /** The API server of the last access: the current context of a kubeconfig may name another one when it is read again. */
  get place(): { readonly server?: string } {
    return defined({ server: this.last?.server });
  }

  readonly get = <T>(call: Call): Promise<T> => this.#call("GET", call);
  readonly post = <T>(call: Call): Promise<T> => this.#call("POST", call);
  readonly delete = <T>(call: Call): Promise<T> => this.#call("DELETE", call);

  /** Parsed lines of a watch, until the server ends it. The caller resumes it, so that failures are not retried here. */
  async *lines(call: Call): AsyncGenerator<unknown, void, void> {
    const { path, signal } = call;
    const what = `watch of ${path}`;
    const access = await this.token(signal);
    const request = { ...requestOf("GET", call, access), signal };
    try {
      const answer = await this.#connections.of(access.route).stream(request);
      if (answer.status !== 200) {
        const text = await answer.text();
        throw new ApiError(what, { status: answer.status, text }, statusFault({ text }));
      }
      const decoder = new TextDecoder();
      let rest = "";
      for await (const chunk of answer.body) {
        // A chunk may end within a line, or within a character: `stream: true` keeps its first bytes for the next chunk.
        const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
        rest = lines.pop()!;
        for (const line of lines) if (line !== "") yield JSON.parse(line);
      }
    } catch (error) {
      signal.throwIfAborted();
      // The caller begins again, with credentials that are read anew.
      if (wasRefused(error, 401)) this.refused();
      if (error instanceof ApiError) throw error;
      throw this.#noted(noAnswer(what, error));
    }
  }

  /** Ends retries and the reading of credentials. Calls under way fail or complete as the transport decides. */
  override close(): Promise<void> {
    this.#isClosed = true;
    return super.close();
  }

  #call<T>(method: HttpRequest["method"], call: Call): Promise<T> {
    const { path, signal } = call;
    const request = (access: Access) => requestOf(method, call, access);
    return this.calls.call({ operation: operationOf(method, path), request, signal }, (answer, asked) => {
      try {
        return JSON.parse(answer.text) as T;
      } catch (error) {
        // A page comes from a proxy or gateway: it is no answer of the API server.
        const page = pageText(asked, answer);
        throw noAnswer(`${method} ${path}`, page === "" ? error : new Error(`${answer.status}${page}`));
      }
    });
  }

  /** What roles (RBAC) forbid is repeated only shortly after an outage: on a server that runs, a 403 is final, as one of a quota always is. */
  #again({ failure, request, attempt, sinceMs }: FailedTry): number | null {
    const { clock, random } = this.#options;
    if (failure instanceof NoAnswer && request !== undefined) this.#noted(failure);
    const isForbidden = wasRefused(failure, 403) && / cannot \w+ resource /.test(failure.text);
    const isRecent = clock.monotonic() - this.#outage < RECENT_MS;
    const mayPass = failure instanceof NoAnswer || wasRefused(failure, ...AGAIN) || (isRecent && isForbidden);
    if (!mayPass || this.#isClosed || sinceMs > OUTAGE_MS) return null;
    return backoff(random, attempt, 100, SLOWEST_MS);
  }

  /** Notes an outage (`isRecent`). */
  #noted(failure: NoAnswer): NoAnswer {
    this.#outage = this.#options.clock.monotonic();
    // The server's authority or our own certificate was renewed: the files have the new one, and the next attempt reads them.
    if (isCertificateError(failure.cause)) this.refused();
    return failure;
  }
}

/** `path` is made of names that the driver has checked, so it needs no encoding. */
function requestOf(method: HttpRequest["method"], { path, query, body }: Call, access: Access): Unsent {
  const headers: Unsent["headers"] = present({ authorization: access.authorization });
  return jsonRequest(method, `${access.server}${path}`, { query, body, headers });
}

/** `pods.GET`: kind and method without object names, so that metrics have few label values. */
function operationOf(method: string, path: string): string {
  // `/api/v1/...` has two parts before the kind, `/apis/GROUP/VERSION/...` has three.
  const parts = path.split("/").slice(path.startsWith("/api/") ? 3 : 4);
  const [first, , kind = first, , below] = parts[0] === "namespaces" ? parts : ["", "", ...parts];
  return [kind, below, method].filter(Boolean).join(".");
}

/** What is read of a namespace, project or pod. Uids are unique over time, unlike names; versions grow with each change of the server. */
export interface KubeObject {
  readonly metadata: ObjectMeta & Required<Pick<ObjectMeta, "name" | "uid" | "resourceVersion">>;
  /** Of pods. */
  readonly spec?: PodSpec;
  readonly status?: PodStatus;
}

/** One page of a list. The version is that of the whole list, on each page. */
type List<T> = Readonly<{ metadata: ListMeta; items: readonly T[] }>;

/** Objects per page: bounds the size of one answer, and the server's work for it. */
const PAGE = "1000";

/** All pages of a list, which show the collection as it was at `version`. Rejects when a page fails: what it has would look deleted. */
export async function listAll<T>(
  connection: Connection,
  path: string,
  signal: AbortSignal,
  query: Readonly<Record<string, string>> = {},
): Promise<{ readonly items: readonly T[]; readonly version: string | undefined }> {
  const read = (next: string | undefined) => {
    const more = next === undefined ? {} : { continue: next };
    return connection.get<List<T>>({ path, query: { ...query, limit: PAGE, ...more }, signal });
  };
  const pages = await allPages(`list of ${path}`, read, ({ metadata }) => metadata.continue);
  return { items: pages.flatMap(({ items }) => items), version: pages[0]!.metadata.resourceVersion };
}
