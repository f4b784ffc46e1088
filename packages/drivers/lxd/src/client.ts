import {
  type DriverContext,
  type HttpAnswer,
  type HttpCall,
  HttpCalls,
  type HttpRequest,
  safeRetry,
  type Wire,
} from "@nodeyard/driver";
import { errorClass, messageOf, NodeyardError } from "@nodeyard/runtime";
import { z } from "zod";

/** The server refused a call, or an operation that it had accepted has failed. */
export class LxdError extends NodeyardError {
  /** Of HTTP, or of the operation; the server says 500 and 400 for almost everything. */
  readonly status: number;
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

const TEXT = z.string().default("");
const ANSWER = z.object({
  ...{ type: z.string(), operation: TEXT, error: TEXT, metadata: z.unknown() },
  error_code: z.number().optional(),
});
const OPERATION = z.object({
  status_code: z.number(),
  err: z.string(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
});

/** An operation is asked for this long, seconds: the answer comes when it has ended. All other calls but uploads are answered at once. */
const WAIT_S = "20";
const TRY_MS = 30_000;
/** Status of an operation that has ended well. Lower ones run, higher ones have failed: 400, and 401 when it was cancelled. */
const SUCCESS = 200;
const FAILED = 400;

export interface LxdClientOptions extends Pick<DriverContext, "clock" | "random" | "observe"> {
  /** Of the configuration: a socket's path or an address. */
  readonly server: string;
  readonly project: string;
  readonly send: Wire["send"];
}

/**
 * The API of one server, within one project. Calls reject with LxdError, NoAnswer, LxdConfigError or the signal's reason. What the server does
 * in the background is waited for by its operation, whose answer comes when it has ended.
 */
export class LxdClient {
  readonly clock: DriverContext["clock"];
  readonly #options: LxdClientOptions;
  readonly #calls: HttpCalls<null, HttpCall<null> & { readonly what: string }>;

  constructor(options: LxdClientOptions) {
    const { clock, random, send } = options;
    this.clock = clock;
    this.#options = options;
    this.#calls = new HttpCalls({
      ...{ clock, send, login: async () => null, refused: () => false },
      noAnswer({ what }, _, cause) {
        if (cause instanceof LxdConfigError) return cause;
        return new NoAnswer(`${what} got no answer from ${options.server}: ${messageOf(cause)}`, { cause });
      },
      // LXD says 500 for what it refuses: only what is no answer of its own is repeated.
      again: (one) => (one.failure instanceof NoAnswer ? safeRetry(one, clock.now(), random).retryMs : null),
    });
  }

  /** The metadata of the answer. */
  async get<S extends z.ZodType>(schema: S, path: string, signal: AbortSignal, query = {}) {
    const { metadata } = await this.#call({ path, query }, signal, answered);
    const { success, data, error } = schema.safeParse(metadata);
    if (success) return data as z.infer<S>;
    throw new NoAnswer(`GET ${path} has an answer that is not LXD's: ${error?.issues[0]?.message}`);
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

  /** What a container wrote to its console; null: there is none, as of virtual machines. */
  console(name: string, signal: AbortSignal): Promise<string | null> {
    return this.#call({ path: `/instances/${name}/console` }, signal, ({ status, text }) => {
      if (status < 300) return text;
      // One that has written nothing yet has no file.
      return /no such file/.test(text) ? "" : null;
    });
  }

  /**
   * Sends a call, and waits for the end of the operation that it may begin. Returns what the operation says of its result. `already`: status and
   * words of a refusal that says that what was to be done is done.
   */
  async done(
    call: LxdCall,
    signal: AbortSignal,
    already?: RegExp,
  ): Promise<Readonly<Record<string, unknown>>> {
    try {
      const { type, operation } = await this.#call(call, signal, answered);
      return type === "async" ? await this.#end(`${call.method} ${call.path}`, operation, signal) : {};
    } catch (error) {
      if (error instanceof LxdError && already?.test(`${error.status} ${error.said}`)) return {};
      throw error;
    }
  }

  async #end(what: string, operation: string, signal: AbortSignal) {
    const path = `${operation.replace(/^\/1\.0|\?.*$/g, "")}/wait`;
    for (;;) {
      const now = await this.maybe(OPERATION, path, signal, { timeout: WAIT_S });
      // A server keeps an operation for seconds after its end, and none over its own restart.
      if (now === undefined) throw new NoAnswer(`${what}: the server has forgotten its operation`);
      if (now.status_code === SUCCESS) return now.metadata ?? {};
      if (now.status_code > SUCCESS) throw new LxdError(what, FAILED, now.err);
    }
  }

  #call<T>(
    { method = "GET", path, query, json, content, tryMs = TRY_MS }: LxdCall,
    signal: AbortSignal,
    read: (answer: HttpAnswer, what: string) => T,
  ): Promise<T> {
    const { server, project, observe } = this.#options;
    const what = `${method} ${path}`;
    const origin = server.startsWith("/") ? "http://lxd" : server.replace(/\/$/, "");
    const url = `${origin}/1.0${path}?${new URLSearchParams({ project, ...query })}`;
    const headers = { "content-type": "application/json" };
    const body = content ?? (json && { headers, body: JSON.stringify(json) });
    const [, kind = "server", , below] = path.split("/");
    const operation = [kind, below, method].filter(Boolean).join(".");
    const request = () => ({ method, url, headers: {}, ...body });
    const sent = { what, operation, request, signal, observe, tryMs };
    return this.#calls.call(sent, (answer) => read(answer, what));
  }
}

/** What the server says, unless it refuses. */
function answered({ status, text }: HttpAnswer, what: string): z.infer<typeof ANSWER> {
  const { success, data } = ANSWER.safeParse(text.startsWith("{") ? JSON.parse(text) : undefined);
  if (!success) throw new NoAnswer(`${what} was answered ${status} by what is not LXD`);
  if (data.type === "error") throw new LxdError(what, data.error_code ?? status, data.error);
  return data;
}
