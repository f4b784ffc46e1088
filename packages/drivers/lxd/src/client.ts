import {
  type Clock,
  Connections,
  type DriverContext,
  type FailedTry,
  type HttpAnswer,
  type HttpCall,
  HttpCalls,
  type HttpRequest,
  isCertificateError,
  RenewedValue,
  safeRetry,
  type Unsent,
  type Wire,
} from "@nodeyard/driver";
import type { TlsOptions } from "@nodeyard/driver/http";
import { errorClass, messageOf, NodeyardError } from "@nodeyard/runtime";
import { z } from "zod";

/** The server refused a call, or an operation that it had accepted has failed. */
export class LxdError extends NodeyardError {
  /** The HTTP status, or that of the operation; the server says 500 and 400 for almost everything. */
  readonly status: number;
  /** What the server says. */
  readonly said: string;

  constructor(what: string, status: number, said: string) {
    super("lxd.refused", `${what} was answered ${status}: ${said}`);
    this.status = status;
    this.said = said;
  }
}

/** No answer came, it was not LXD's, or the server has forgotten an operation, so that its outcome is unknown. */
export class NoAnswer extends errorClass("lxd.no_answer") {}

/** A certificate or key cannot be read. */
export class LxdConfigError extends errorClass("lxd.configuration") {}

/** By which files and under which address a server is reached. */
export type Route = Omit<TlsOptions, "verify">;

/** A call. `path` is below `/1.0`. */
export interface LxdCall {
  readonly method?: HttpRequest["method"];
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly json?: object;
  /** In place of `json`: bytes with their headers, sent once. */
  readonly content?: Pick<HttpRequest, "headers" | "body">;
  readonly tryMs?: number;
}

interface Sent extends HttpCall<Route> {
  readonly what: string;
}

const ANSWER = z.object({
  type: z.string(),
  operation: z.string().optional(),
  error: z.string().optional(),
  error_code: z.number().optional(),
  metadata: z.unknown(),
});
const OPERATION = z.object({
  status_code: z.number(),
  err: z.string(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
});
type Answer = z.infer<typeof ANSWER>;

/** An operation is asked for this long, seconds: the answer comes when it has ended. */
const WAIT_S = 30;
/** From this code on an operation has ended: below are those that run. */
const ENDED = 200;
/** Time limit of reading certificates, milliseconds. */
const LOAD_MS = 60_000;

/** What a client is made of. */
export interface LxdClientOptions extends Pick<DriverContext, "clock" | "random" | "observe"> {
  /** Of the configuration: a socket's path or an address. */
  readonly server: string;
  readonly project: string;
  readonly route: () => Route;
  readonly connect: (route: Route) => Pick<Wire, "send" | "close">;
}

/**
 * The API of one server, within one project. Calls reject with LxdError, NoAnswer, LxdConfigError or the signal's reason. What the server does
 * in the background is waited for by its operation, whose answer comes when it has ended.
 */
export class LxdClient {
  readonly clock: Clock;
  readonly #options: LxdClientOptions;
  readonly #route: RenewedValue<Route>;
  readonly #connections: Connections<Route, Pick<Wire, "send" | "close">>;
  readonly #calls: HttpCalls<Route, Sent>;

  constructor(options: LxdClientOptions) {
    const { clock, route, connect } = options;
    this.clock = clock;
    this.#options = options;
    this.#connections = new Connections(connect);
    this.#route = new RenewedValue({
      clock,
      load: async () => route(),
      endOf: () => null,
      loadMs: LOAD_MS,
      late: () => new LxdConfigError(`the certificates for ${options.server} were not read in time`),
    });
    this.#calls = new HttpCalls({
      clock,
      send: (request, login) => this.#connections.of(login).send(request),
      login: () => this.#route.get(),
      refused: () => false,
      noAnswer: ({ what }, _, cause) => this.#noAnswer(what, cause),
      again: (failed) => this.#again(failed),
    });
  }

  /** What `read` makes of the answer's metadata. */
  async get<S extends z.ZodType>(
    schema: S,
    path: string,
    signal: AbortSignal,
    query = {},
  ): Promise<z.infer<S>> {
    const { metadata } = await this.#send({ path, query }, signal);
    const parsed = schema.safeParse(metadata);
    if (parsed.success) return parsed.data;
    throw new NoAnswer(`GET ${path} has an answer that is not LXD's: ${parsed.error.issues[0]?.message}`);
  }

  /** As `get`; undefined: there is no such object. */
  async maybe<S extends z.ZodType>(schema: S, path: string, signal: AbortSignal, query = {}) {
    try {
      return await this.get(schema, path, signal, query);
    } catch (error) {
      if (error instanceof LxdError && error.status === 404) return undefined;
      throw error;
    }
  }

  /** A text that is no JSON, such as a console. */
  text(path: string, signal: AbortSignal): Promise<string> {
    return this.#calls.call(this.#sent({ path }, signal), (answer) => {
      if (answer.status >= 300) this.#read(answer, `GET ${path}`);
      return answer.text;
    });
  }

  /** Sends a call, and waits for the end of the operation that it may begin. Returns what the operation says of its result. */
  async done(call: LxdCall, signal: AbortSignal): Promise<Readonly<Record<string, unknown>>> {
    const what = whatOf(call);
    const { type, operation = "" } = await this.#send(call, signal);
    if (type !== "async") return {};
    const path = `${operation.replace(/^\/1\.0|\?.*$/g, "")}/wait`;
    for (;;) {
      const { status_code, err, metadata } = await this.#operation(what, path, signal);
      if (status_code === ENDED) return metadata ?? {};
      if (status_code > ENDED) throw new LxdError(what, status_code, err);
    }
  }

  /** Accepts no further calls, and resolves when those under way have ended. */
  async close(): Promise<void> {
    this.#route.close(new NoAnswer("the connection is closed"));
    await this.#connections.close();
  }

  async #operation(what: string, path: string, signal: AbortSignal) {
    const operation = await this.maybe(OPERATION, path, signal, { timeout: String(WAIT_S) });
    if (operation !== undefined) return operation;
    // A server keeps an operation for seconds after its end, and none over its own restart.
    throw new NoAnswer(`${what}: the server has forgotten its operation, so the outcome is unknown`);
  }

  #send(call: LxdCall, signal: AbortSignal): Promise<Answer> {
    return this.#calls.call(this.#sent(call, signal), (answer) => this.#read(answer, whatOf(call)));
  }

  #sent(call: LxdCall, signal: AbortSignal): Sent {
    const { method = "GET", path, query, json, content, tryMs } = call;
    const { server, project, observe } = this.#options;
    const words = new URLSearchParams({ project, ...query });
    const origin = server.startsWith("/") ? "http://lxd" : server.replace(/\/$/, "");
    const body =
      content ?? (json && { headers: { "content-type": "application/json" }, body: JSON.stringify(json) });
    const request: Unsent = { method, url: `${origin}/1.0${path}?${words}`, headers: {}, ...body };
    const [, kind = "server", , below] = path.split("/");
    const operation = [kind, below, method].filter(Boolean).join(".");
    return {
      what: whatOf(call),
      operation,
      request: () => request,
      signal,
      observe,
      ...(tryMs && { tryMs }),
    };
  }

  #read({ status, text }: HttpAnswer, what: string): Answer {
    const parsed = ANSWER.safeParse(parsedOr(text));
    if (!parsed.success) throw new NoAnswer(`${what} was answered ${status} by what is not LXD`);
    const { type, error = "", error_code = status } = parsed.data;
    if (type === "error") throw new LxdError(what, error_code, error);
    return parsed.data;
  }

  #noAnswer(what: string, cause: unknown): Error {
    if (cause instanceof LxdError || cause instanceof NoAnswer) return cause;
    // The certificate may have been replaced: the files are read again before the next try.
    if (isCertificateError(cause)) this.#route.refused();
    return new NoAnswer(`${what} got no answer from ${this.#options.server}: ${messageOf(cause)}`, { cause });
  }

  #again({ answer, ...failed }: FailedTry): number | null {
    const { clock, random } = this.#options;
    // LXD says 500 for what it refuses: only what is no answer of its own is repeated.
    if (failed.failure instanceof LxdError) return null;
    return safeRetry({ ...failed, answer }, clock.now(), random).retryMs;
  }
}

const whatOf = ({ method = "GET", path }: LxdCall) => `${method} ${path}`;

function parsedOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
