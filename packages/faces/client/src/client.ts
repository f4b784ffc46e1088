import { backoff, type Clock, deadline, defined, messageOf, type Random, sleep } from "@nodeyard/runtime";
import type { Transport } from "./edge/transport.ts";
import { CallRefused, ClientError } from "./errors.ts";
import { type EventQuery, follow, type YardEvent } from "./events.ts";
import { type Operations, type Problem, ROUTES } from "./generated/operations.ts";
import { acquire, type Lease, type LeaseWish, resume } from "./lease.ts";
import {
  type Arguments,
  type CallOptions,
  isRepeatable,
  type ListId,
  type OperationId,
  type Parts,
  type QueryOf,
  type Reply,
  type RowOf,
  targetOf,
} from "./operation.ts";

/** Dependencies of a client; `connect` provides them. */
export interface ClientParts {
  /** Address as the caller gave it, for messages. */
  readonly address: string;
  /** Prefix of all targets, without a slash at the end. */
  readonly base: string;
  readonly send: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly token: string | undefined;
  readonly timeoutMs: number;
}

/** Most attempts of one call. */
const TRIES = 6;
const FIRST_PAUSE_MS = 200;
const MAX_PAUSE_MS = 5_000;
/** Statuses of a server, or of a proxy in front of it, that are temporary. */
const PASSING: ReadonlySet<number> = new Set([502, 503, 504]);

/** Calls of REST v1 with types from its OpenAPI document. A client holds no resources, so there is nothing to close. */
export class Client {
  readonly #parts: ClientParts;

  constructor(parts: ClientParts) {
    this.#parts = parts;
  }

  /**
   * Calls an operation, and repeats the call when that is safe. Rejects with CallRefused or ClientError.
   *
   *     const { id } = await client.call("create_lease", { body: { labels: ["small"] } });
   */
  async call<Id extends OperationId>(id: Id, ...rest: Arguments<Id>): Promise<Reply<Id>> {
    const [given = {}, options = {}] = rest as readonly [Parts?, CallOptions?];
    const key = ROUTES[id].keyed ? (options.key ?? this.#parts.random.uuid()) : undefined;
    const text = await this.#withRetries(id, options, async (signal) => {
      const reply = await this.#send(id, given, signal, key === undefined ? {} : { "idempotency-key": key });
      return reply.text();
    });
    return (text === "" ? undefined : parsed(text, ROUTES[id].path)) as Reply<Id>;
  }

  /**
   * All rows of a list. Pages are fetched when they are needed.
   *
   *     for await (const node of client.list("list_nodes", { state: "ready" })) console.log(node.id);
   */
  async *list<Id extends ListId, const Query extends QueryOf<Id>>(
    id: Id,
    query: Query = {} as Query,
    options: CallOptions = {},
  ): AsyncGenerator<RowOf<Id, Query>, void, undefined> {
    let cursor: string | undefined;
    do {
      const given = { query: { limit: 1_000, ...query, ...defined({ cursor }) } };
      const page = (await this.call(id, ...([given, options] as unknown as Arguments<Id>))) as {
        readonly items: readonly RowOf<Id, Query>[];
        readonly next: string | null;
      };
      yield* page.items;
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
  }

  /**
   * Follows changes and resumes after a lost connection. After a `gap` event, all rows are sent again. The iteration ends with the loop. It
   * rejects with the signal's reason, with CallRefused, or with ClientError when no server answers for more than a minute.
   */
  events(
    query: EventQuery = {},
    { signal }: Pick<CallOptions, "signal"> = {},
  ): AsyncGenerator<YardEvent, void, undefined> {
    const { clock, random } = this.#parts;
    const open = (last: string | undefined, stop: AbortSignal) =>
      this.#send(
        "follow_events",
        { query: { ...query } },
        stop,
        last === undefined ? {} : { "last-event-id": last },
      );
    return follow(open, { clock, random, ...defined({ signal }) });
  }

  /**
   * Leases nodes and resolves when they are ready. Heartbeats are sent until the lease ends. With `await using` it is released at the end
   * of the scope. Rejects with LeaseFailed when no pool can serve it. On rejection, also by `signal`, the lease is released.
   *
   *     await using lease = await client.lease({ labels: ["small"] });
   *     const [node] = await lease.nodes();
   */
  lease(wish: LeaseWish, options: Pick<CallOptions, "signal" | "key"> = {}): Promise<Lease> {
    return acquire(this, this.#parts.clock, wish, options);
  }

  /**
   * Goes on with a lease that another process of this client has made, and resolves when its nodes are ready. It is kept alive from now on.
   * On rejection, also by `signal`, it is left as it is. Rejects with CallRefused when it has ended, and with LeaseFailed.
   */
  resume(id: string, options: Pick<CallOptions, "signal"> = {}): Promise<Lease> {
    return resume(this, this.#parts.clock, id, options);
  }

  /** Sends one request. Resolves when the head of a successful answer has arrived. */
  async #send(
    id: OperationId,
    parts: Parts,
    signal: AbortSignal,
    more: Readonly<Record<string, string>>,
  ): Promise<Response> {
    const { address, base, send, token } = this.#parts;
    const headers = {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(parts.body === undefined ? {} : { "content-type": "application/json" }),
      ...more,
    };
    const body = parts.body === undefined ? {} : { body: JSON.stringify(parts.body) };
    const reply = await send(base + targetOf(id, parts), {
      method: ROUTES[id].method,
      headers,
      ...body,
      signal,
    }).catch((error: unknown) => {
      if (signal.aborted) throw signal.reason;
      throw unreachable(address, error);
    });
    if (!reply.ok) throw await refusal(reply, ROUTES[id].path);
    return reply;
  }

  async #withRetries<T>(
    id: OperationId,
    options: CallOptions,
    once: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { clock, random, address } = this.#parts;
    const { timeoutMs = this.#parts.timeoutMs, signal } = options;
    const end = clock.monotonic() + timeoutMs;
    const late = () =>
      new ClientError("client.timeout", `${address}: ${id} was not answered within ${timeoutMs} ms`);
    const limit = deadline(clock, timeoutMs, late, signal);
    try {
      for (let attempt = 0; ; attempt++) {
        try {
          return await once(limit.signal);
        } catch (error) {
          if (limit.signal.aborted) throw limit.signal.reason;
          // The body of the answer was cut off.
          const known =
            error instanceof CallRefused || error instanceof ClientError
              ? error
              : unreachable(address, error);
          const pause = pauseAfter(
            known,
            backoff(random, attempt, FIRST_PAUSE_MS, MAX_PAUSE_MS),
            isRepeatable(id),
          );
          // A wait beyond the end would only replace the cause by a timeout.
          if (pause === undefined || attempt + 1 >= TRIES || clock.monotonic() + pause >= end) throw known;
          await sleep(clock, pause, limit.signal);
        }
      }
    } finally {
      limit.cancel();
    }
  }
}

/** Milliseconds until the call may be repeated; undefined: never. */
function pauseAfter(
  error: CallRefused | ClientError,
  pause: number,
  repeatable: boolean,
): number | undefined {
  if (error instanceof ClientError)
    return repeatable && error.code === "client.unreachable" ? pause : undefined;
  const { status, retryAfter = 0 } = error;
  // 429 means that the call was refused before it had any effect, so every operation may be repeated.
  const isPassing = status === 429 || (repeatable && PASSING.has(status));
  return isPassing ? Math.max(pause, retryAfter * 1_000) : undefined;
}

function unreachable(address: string, error: unknown): ClientError {
  const { cause } = error as { readonly cause?: unknown };
  const why = messageOf(cause ?? error) || String((cause as { code?: unknown } | undefined)?.code);
  const text = `${address} does not answer (${why}): is a Nodeyard running there, and is the address right?`;
  return new ClientError("client.unreachable", text, { cause: error });
}

async function refusal(reply: Response, path: string): Promise<CallRefused> {
  const seconds = Number(reply.headers.get("retry-after") ?? Number.NaN);
  const text = await reply.text().catch(() => "");
  return new CallRefused(problemIn(text, reply.status, path), Number.isFinite(seconds) ? seconds : undefined);
}

/** Reads the problem document of an answer. A proxy may answer with a page of its own instead. */
function problemIn(text: string, status: number, path: string): Problem {
  try {
    const found = JSON.parse(text) as Partial<Problem>;
    if (typeof found.code === "string" && typeof found.detail === "string")
      return { type: "", title: "", ...found, code: found.code, detail: found.detail, status };
  } catch {
    // The text is not JSON: see below.
  }
  const detail = `${path} answered ${status} without saying why: what answers there may be a proxy, and no Nodeyard`;
  return { type: "", title: "", status, code: "client.no_problem", detail };
}

function parsed(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ClientError(
      "client.bad_answer",
      `${path} did not answer with JSON: is the address that of a Nodeyard?`,
      {
        cause,
      },
    );
  }
}

export type { Operations };
