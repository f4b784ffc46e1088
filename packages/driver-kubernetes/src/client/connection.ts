import { backoff, type Clock, deadline, messageOf, type Random, sleep } from "@nodeyard/runtime";
import { KubeError, NoAnswer } from "./errors.ts";
import type { Access } from "./kubeconfig.ts";
import type { HttpRequest, Route, Transport } from "./transport.ts";

/** A call as the metrics count it: each try is one. */
export interface CallSeen {
  readonly operation: string;
  readonly result: string;
  readonly ms: number;
}

export interface ConnectionOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Reads the credentials anew. */
  readonly resolve: (signal: AbortSignal) => Promise<Access>;
  readonly connect: (route: Route) => Transport;
  readonly observe?: (call: CallSeen) => void;
}

/** What is sent. `path` has no query. */
export interface Call {
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly signal: AbortSignal;
}

/** Credentials are read again after this long, milliseconds: kubelets replace token files, and others certificates. */
const FRESH_MS = 60_000;
/** A credential with an end is replaced this long before it, milliseconds. */
const EARLY_MS = 60_000;
/** One try of one call, milliseconds; the server gives up after as long. */
const TRY_MS = 60_000;
/** A server that restarts is back within this long, milliseconds. Longer outages are the caller's to wait for. */
const OUTAGE_MS = 45_000;
const SLOWEST_MS = 5_000;
/** A server that has just begun has not read all roles yet, and refuses what it will allow a moment later, milliseconds. */
const YOUNG_MS = 20_000;
/** Statuses after which the same call may succeed: all objects have names that we choose, so that nothing is made twice. */
const AGAIN: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/** Calls to one API server under one credential, which is kept fresh. */
export class Connection {
  readonly #options: ConnectionOptions;
  #known: { readonly access: Access; readonly at: number } | undefined;
  #resolving: Promise<Access> | undefined;
  #transport: { readonly key: string; readonly transport: Transport } | undefined;
  readonly #closed = new AbortController();
  /** When the server was last not there, by the monotonic clock. */
  #outage = Number.NEGATIVE_INFINITY;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** As it is now. Throws KubeConfigError. */
  access(): Promise<Access> {
    const { clock } = this.#options;
    const { access, at } = this.#known ?? {};
    const isFresh =
      access !== undefined &&
      (access.expires === null
        ? clock.monotonic() - at! < FRESH_MS
        : access.expires - EARLY_MS > clock.now());
    if (isFresh) return Promise.resolve(access);
    this.#resolving ??= this.#resolve().finally(() => {
      this.#resolving = undefined;
    });
    return this.#resolving;
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

  /** Lines of a watch, parsed. Ends when the server ends it; no try is repeated. */
  async *lines(call: Call): AsyncGenerator<unknown, void, void> {
    const { transport, request } = await this.#request("GET", call, call.signal);
    let answer: Awaited<ReturnType<Transport["stream"]>>;
    try {
      answer = await transport.stream(request);
    } catch (error) {
      throw this.#noAnswer("GET", call, error);
    }
    if (answer.status !== 200) {
      if (answer.status === 401) this.#known = undefined;
      throw new KubeError(`watch of ${call.path}`, answer.status, await answer.text());
    }
    const decoder = new TextDecoder();
    let rest = "";
    try {
      for await (const chunk of answer.body) {
        const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
        rest = lines.pop()!;
        for (const line of lines) if (line !== "") yield JSON.parse(line);
      }
    } catch (error) {
      throw this.#noAnswer("GET", call, error);
    }
  }

  async close(): Promise<void> {
    this.#closed.abort(new Error("the connection is closed"));
    await this.#transport?.transport.close();
  }

  async #call<T>(method: HttpRequest["method"], call: Call): Promise<T> {
    const { clock, random } = this.#options;
    const began = clock.monotonic();
    let isRenewed = false;
    for (let tries = 0; ; tries++) {
      try {
        return await this.#try<T>(method, call);
      } catch (error) {
        call.signal.throwIfAborted();
        if (error instanceof KubeError && error.status === 401 && !isRenewed) {
          isRenewed = true;
          this.#known = undefined;
          continue;
        }
        const isYoung = clock.monotonic() - this.#outage < YOUNG_MS;
        const mayPass =
          error instanceof NoAnswer ||
          (error instanceof KubeError && (AGAIN.has(error.status) || (isYoung && isForbidden(error))));
        if (!mayPass || this.#closed.signal.aborted || clock.monotonic() - began > OUTAGE_MS) throw error;
        await sleep(clock, backoff(random, tries, 100, SLOWEST_MS), call.signal);
      }
    }
  }

  async #try<T>(method: HttpRequest["method"], call: Call): Promise<T> {
    const { clock, observe } = this.#options;
    const limit = deadline(clock, TRY_MS, () => new Error(`no answer in ${TRY_MS} ms`), call.signal);
    const { transport, request } = await this.#request(method, call, limit.signal);
    const start = clock.monotonic();
    let result = "none";
    try {
      const { status, text } = await transport.send(request);
      result = String(status);
      if (status < 200 || status > 299) throw new KubeError(`${method} ${call.path}`, status, text);
      return JSON.parse(text) as T;
    } catch (error) {
      throw error instanceof KubeError ? error : this.#noAnswer(method, call, error);
    } finally {
      limit.cancel();
      observe?.({ operation: operationOf(method, call.path), result, ms: clock.monotonic() - start });
    }
  }

  async #request(method: HttpRequest["method"], { path, query, body }: Call, signal: AbortSignal) {
    const { server, route, authorization } = await this.access();
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
    return { transport: this.#transportFor(route), request };
  }

  /** A renewed certificate needs connections of its own; those under way end by themselves. */
  #transportFor(route: Route): Transport {
    const key = JSON.stringify(route);
    if (this.#transport?.key === key) return this.#transport.transport;
    void this.#transport?.transport.close();
    this.#transport = { key, transport: this.#options.connect(route) };
    return this.#transport.transport;
  }

  async #resolve(): Promise<Access> {
    const { clock, resolve } = this.#options;
    const limit = deadline(
      clock,
      TRY_MS,
      () => new NoAnswer(`no credentials within ${TRY_MS} ms; check the credential plugin of the kubeconfig`),
      this.#closed.signal,
    );
    try {
      const access = await resolve(limit.signal);
      this.#known = { access, at: clock.monotonic() };
      return access;
    } finally {
      limit.cancel();
    }
  }

  #noAnswer(method: string, { path, signal }: Call, cause: unknown): unknown {
    if (signal.aborted) return signal.reason;
    this.#outage = this.#options.clock.monotonic();
    return new NoAnswer(`${method} ${path} got no answer: ${messageOf(cause)}`, { cause });
  }
}

/** By the server's roles, not by a quota or a rule of admission. */
function isForbidden({ status, said }: KubeError): boolean {
  return status === 403 && / cannot \w+ resource /.test(said);
}

/** `pods.GET`: the kind of object without names, of which there are few. */
function operationOf(method: string, path: string): string {
  const parts = path.split("/").slice(path.startsWith("/api/") ? 3 : 4);
  const [first = "", , kind = first, , below] = parts[0] === "namespaces" ? parts : ["", "", ...parts];
  return `${[kind, below].filter((part) => part !== undefined && part !== "").join(".")}.${method}`;
}
