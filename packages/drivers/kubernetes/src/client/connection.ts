import { Connections, isCertificateError, RenewedValue } from "@nodeyard/driver";
import {
  backoff,
  type Clock,
  deadline,
  defined,
  keepSecret,
  messageOf,
  type Random,
  sleep,
} from "@nodeyard/runtime";
import { KubeError, NoAnswer } from "./errors.ts";
import type { Access } from "./kubeconfig.ts";
import type { HttpRequest, Route, Transport } from "./transport.ts";

/**
 * An attempt of a call, for metrics: a call that is repeated counts each time. `result`: the HTTP status, or "none" when there
 * was no answer.
 */
export interface CallSeen {
  /** Kind and method, as `pods.GET` (`operationOf`). */
  readonly operation: string;
  readonly result: string;
  readonly ms: number;
  /** Why there was no reply. */
  readonly error?: unknown;
}

export interface ConnectionOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Reads the credentials again. */
  readonly resolve: (signal: AbortSignal) => Promise<Access>;
  /** Makes the connections of a route. Called again when the route changes. */
  readonly connect: (route: Route) => Transport;
  readonly observe?: (call: CallSeen) => void;
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

/** Milliseconds for one attempt of a call: the API server's own request timeout. */
const TRY_MS = 60_000;
/** Milliseconds in which a restarting API server is available again. Longer outages end the call with an error. */
const OUTAGE_MS = 45_000;
/** Longest pause between two attempts, milliseconds. */
const SLOWEST_MS = 5_000;
/** Milliseconds during which a 403 is retried after an outage: a new API server refuses calls until it has loaded all roles. */
const RECENT_MS = 20_000;
/**
 * HTTP statuses after which a call is repeated. This is safe, because the driver chooses all object names: a repeated POST gets
 * "AlreadyExists".
 */
const AGAIN: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/**
 * Calls to one API server with one credential, which is renewed when necessary. `get`, `post` and `delete` retry interrupted calls for
 * OUTAGE_MS. They reject with KubeError (an error answer), NoAnswer (no answer), KubeConfigError (no credential), or the signal's reason.
 */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #access: RenewedValue<Access>;
  readonly #connections: Connections<Route, Transport>;
  readonly #closed = new AbortController();
  /** Monotonic time at which the server was last unavailable. */
  #outage = Number.NEGATIVE_INFINITY;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const { clock, resolve } = options;
    this.#connections = new Connections(options.connect);
    this.#access = new RenewedValue({
      clock,
      load: async (signal) => {
        const access = await resolve(signal);
        // Without the name of the scheme, by which other messages would be spoilt.
        for (const secret of [access.authorization?.split(" ")[1], access.route.key]) keepSecret(secret);
        return access;
      },
      endOf: ({ expires }) => expires,
      loadMs: TRY_MS,
      late: () =>
        new NoAnswer(`no credentials within ${TRY_MS} ms; check the credential plugin of the kubeconfig`),
    });
  }

  /** The API server of the last access: the current context of a kubeconfig may name another one when it is read again. */
  get place(): { readonly server?: string } {
    const server = this.#access.last?.server;
    return defined({ server });
  }

  /** The current access. Throws KubeConfigError, and NoAnswer when a credential plugin hangs. */
  access(): Promise<Access> {
    return this.#access.get();
  }

  get<T>(call: Call): Promise<T> {
    return this.#call("GET", call);
  }

  post<T>(call: Call): Promise<T> {
    return this.#call("POST", call);
  }

  delete<T>(call: Call): Promise<T> {
    return this.#call("DELETE", call);
  }

  /**
   * Parsed lines of a watch. Ends when the server ends the watch. The caller resumes it, so failures are not retried here. It has
   * no time limit of its own; the caller's signal ends it.
   */
  async *lines(call: Call): AsyncGenerator<unknown, void, void> {
    const { transport, request } = await this.#request("GET", call);
    let answer: Awaited<ReturnType<Transport["stream"]>>;
    try {
      answer = await transport.stream(request);
    } catch (error) {
      throw this.#noAnswer("GET", call, error);
    }
    if (answer.status !== 200) {
      // The caller begins again, with credentials that are read anew.
      if (answer.status === 401) this.#access.refused();
      throw new KubeError(`watch of ${call.path}`, answer.status, await answer.text());
    }
    const decoder = new TextDecoder();
    let rest = "";
    try {
      for await (const chunk of answer.body) {
        // A chunk may end within a line, or within a character: `stream: true` keeps its first bytes for the next chunk.
        const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
        rest = lines.pop()!;
        for (const line of lines) if (line !== "") yield JSON.parse(line);
      }
    } catch (error) {
      throw this.#noAnswer("GET", call, error);
    }
  }

  /** Ends retries and the reading of credentials. Calls under way fail or complete as the transport decides. */
  async close(): Promise<void> {
    const closed = new Error("the connection is closed");
    this.#closed.abort(closed);
    this.#access.close(closed);
    await this.#connections.close();
  }

  async #call<T>(method: HttpRequest["method"], call: Call): Promise<T> {
    const { clock, random } = this.#options;
    const began = clock.monotonic();
    // A 401 is repeated once with credentials that are read again. A second one is an error of the credential.
    let isRenewed = false;
    for (let tries = 0; ; tries++) {
      try {
        return await this.#try<T>(method, call);
      } catch (error) {
        call.signal.throwIfAborted();
        if (error instanceof KubeError && error.status === 401 && !isRenewed) {
          isRenewed = true;
          this.#access.refused();
          continue;
        }
        const isRecent = clock.monotonic() - this.#outage < RECENT_MS;
        // A forbidden call is repeated only shortly after an outage, since a 403 is final on a server that runs.
        const mayPass =
          error instanceof NoAnswer ||
          (error instanceof KubeError && (AGAIN.has(error.status) || (isRecent && isForbidden(error))));
        if (!mayPass || this.#closed.signal.aborted || clock.monotonic() - began > OUTAGE_MS) throw error;
        await sleep(clock, backoff(random, tries, 100, SLOWEST_MS), call.signal);
      }
    }
  }

  async #try<T>(method: HttpRequest["method"], call: Call): Promise<T> {
    const { clock, observe } = this.#options;
    // Credentials have a limit of their own, so this one begins after them.
    const { transport, request } = await this.#request(method, call);
    using limit = deadline(clock, TRY_MS, () => new Error(`no answer in ${TRY_MS} ms`), call.signal);
    const start = clock.monotonic();
    let result = "none";
    let failure: unknown;
    try {
      const { status, text } = await transport.send({ ...request, signal: limit.signal });
      result = String(status);
      // A page comes from a proxy or gateway, whose address helps to find it. With a status of success it is handled as no answer.
      const isPage = text.trimStart().startsWith("<");
      const { origin } = new URL(request.url);
      if (status < 200 || status > 299)
        throw new KubeError(`${method} ${isPage ? origin : ""}${call.path}`, status, text);
      if (isPage) throw new Error(`${origin} answered ${status} with a page that is not the API server's`);
      return JSON.parse(text) as T;
    } catch (error) {
      if (error instanceof KubeError) throw error;
      failure = this.#noAnswer(method, call, error);
      throw failure;
    } finally {
      const ms = clock.monotonic() - start;
      observe?.({ operation: operationOf(method, call.path), result, ms, error: failure });
    }
  }

  async #request(method: HttpRequest["method"], { path, query, body, signal }: Call) {
    const { server, route, authorization } = await this.access();
    // `path` is made of names that the driver has checked, so it needs no encoding.
    const url = `${server}${path}${query === undefined ? "" : `?${new URLSearchParams(query)}`}`;
    const headers = {
      accept: "application/json",
      ...(authorization === null ? {} : { authorization }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    };
    const request: HttpRequest = {
      method,
      url,
      headers,
      signal,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    return { transport: this.#connections.of(route), request };
  }

  /** The error for a failed exchange: the signal's reason when the caller aborted, otherwise NoAnswer. Notes the outage for `isRecent`. */
  #noAnswer(method: string, { path, signal }: Call, cause: unknown): unknown {
    if (signal.aborted) return signal.reason;
    this.#outage = this.#options.clock.monotonic();
    // The server's authority or our own certificate was renewed: the files have the new one, and the next attempt reads them.
    if (isCertificateError(cause)) this.#access.refused();
    return new NoAnswer(`${method} ${path} got no answer: ${messageOf(cause)}`, { cause });
  }
}

/** Whether roles (RBAC) forbid the call. A quota and an admission rule answer 403 too, but with other messages. */
function isForbidden({ status, said }: KubeError): boolean {
  return status === 403 && / cannot \w+ resource /.test(said);
}

/** `pods.GET`: kind and method without object names, so that metrics have few label values. */
function operationOf(method: string, path: string): string {
  // `/api/v1/...` has two parts before the kind, `/apis/GROUP/VERSION/...` has three.
  const parts = path.split("/").slice(path.startsWith("/api/") ? 3 : 4);
  const [first = "", , kind = first, , below] = parts[0] === "namespaces" ? parts : ["", "", ...parts];
  return `${[kind, below].filter((part) => part !== undefined && part !== "").join(".")}.${method}`;
}
