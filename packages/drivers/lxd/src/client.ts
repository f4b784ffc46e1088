import {
  ApiError,
  type DriverContext,
  type HttpAnswer,
  HttpCalls,
  type HttpRequest,
  jsonRequest,
  NoAnswer,
  OddAnswer,
  safely,
  unlessRefused,
  type Wire,
} from "@nodeyard/driver";
import { z } from "zod";
import { OPERATION, type OperationEvents, SUCCESS } from "./operations.ts";

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
/** An operation is asked for this long, seconds: the answer comes when it has ended. All other calls but uploads are answered at once. */
const WAIT_S = "20";
const TRY_MS = 30_000;
const FAILED = 400;

export interface LxdClientOptions extends Pick<DriverContext, "clock" | "random" | "observe"> {
  /** Of the configuration: a socket's path or an address. */
  readonly server: string;
  readonly project: string;
  readonly send: Wire["send"];
  readonly events: OperationEvents;
}

/**
 * The API of one server, within one project. Calls reject with ApiError, NoAnswer, OddAnswer, CloudConfigError or the signal's reason. What the server does
 * in the background is waited for by its operation, whose end the server tells.
 */
export class LxdClient {
  readonly clock: DriverContext["clock"];
  readonly #options: LxdClientOptions;
  readonly #calls: HttpCalls<null>;

  constructor(options: LxdClientOptions) {
    const { clock, random, send } = options;
    this.clock = clock;
    this.#options = options;
    this.#calls = new HttpCalls({
      ...{ clock, send, login: async () => null, refused: () => false },
      // LXD says 500 for what it refuses: only what is no answer of its own is repeated.
      again: (tried) => (tried.failure instanceof NoAnswer ? safely(clock, random)(tried) : null),
    });
  }

  /** The metadata of the answer. */
  async get<S extends z.ZodType>(schema: S, path: string, signal: AbortSignal, query = {}) {
    const { metadata } = await this.#call({ path, query }, signal, answered);
    const { success, data, error } = schema.safeParse(metadata);
    if (success) return data as z.infer<S>;
    throw new OddAnswer(`GET ${path} has an answer that is not LXD's: ${error?.issues[0]?.message}`);
  }

  /** As `get`; undefined: there is no such object. */
  maybe<S extends z.ZodType>(schema: S, path: string, signal: AbortSignal, query = {}) {
    return unlessRefused(this.get(schema, path, signal, query));
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
    await this.#options.events.begin();
    try {
      const { type, operation } = await this.#call(call, signal, answered);
      return type === "async" ? await this.#end(`${call.method} ${call.path}`, operation, signal) : {};
    } catch (error) {
      if (error instanceof ApiError && already?.test(`${error.status} ${error.text}`)) return {};
      throw error;
    }
  }

  async #end(what: string, operation: string, signal: AbortSignal) {
    const path = operation.replace(/^\/1\.0|\?.*$/g, "");
    const told = await this.#options.events.end(path.slice(path.lastIndexOf("/") + 1), signal);
    for (;;) {
      const now = told ?? (await this.maybe(OPERATION, `${path}/wait`, signal, { timeout: WAIT_S }));
      // A server keeps an operation for seconds after its end, and none over its own restart.
      if (now === undefined) throw new NoAnswer(`${what}: the server has forgotten its operation`);
      if (now.status_code === SUCCESS) return now.metadata ?? {};
      if (now.status_code > SUCCESS) throw refusal(what, FAILED, now.err);
    }
  }

  #call<T>(
    { method = "GET", path, query, json, content, tryMs = TRY_MS }: LxdCall,
    signal: AbortSignal,
    read: (answer: HttpAnswer, what: string) => T,
  ): Promise<T> {
    const { server, project, observe } = this.#options;
    const parts = { query: { project, ...query }, body: json };
    const unsent = { ...jsonRequest(method, `${originOf(server)}/1.0${path}`, parts), ...content };
    const [, kind = "server", , below] = path.split("/");
    const operation = [kind, below, method].filter(Boolean).join(".");
    const sent = { operation, request: () => unsent, signal, observe, tryMs };
    return this.#calls.call(sent, (answer) => read(answer, `${method} ${path}`));
  }
}

/** Where a server is, by the configuration. */
export const originOf = (server: string) =>
  server.startsWith("/") ? "http://lxd" : server.replace(/\/$/, "");

/** What the server says, unless it refuses. */
function answered({ status, text }: HttpAnswer, what: string): z.infer<typeof ANSWER> {
  const { success, data } = ANSWER.safeParse(text.startsWith("{") ? JSON.parse(text) : undefined);
  if (!success) throw new NoAnswer(`${what} was answered ${status} by what is not LXD`);
  if (data.type === "error") throw refusal(what, data.error_code ?? status, data.error);
  return data;
}

/** The server refused a call, or an operation that it had accepted has failed. Its status says 500 and 400 for almost everything. */
export function refusal(what: string, status: number, text: string): ApiError {
  return new ApiError(what, { status, text });
}
