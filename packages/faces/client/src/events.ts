import { backoff, type Clock, type Random, sleep } from "@nodeyard/runtime";
import { CallRefused, ClientError } from "./errors.ts";
import type { QueryOf, Reply, RowOf } from "./operation.ts";

/** Kinds to follow; none chosen means all. */
export type EventQuery = Omit<QueryOf<"follow_events">, "last_event_id">;

/** Rows of the stream of events, by kind: those of the lists. */
export interface EventRows {
  readonly node: Reply<"get_nodes">;
  readonly request: Reply<"get_requests">;
  readonly lease: Reply<"get_leases">;
  readonly image: RowOf<"list_images">;
  readonly pool: RowOf<"list_pools">;
  readonly member: RowOf<"list_members">;
  readonly standing: RowOf<"list_standings">;
}

/** A row exists or has changed. */
export type Put = {
  [Kind in keyof EventRows]: {
    readonly type: "put";
    readonly kind: Kind;
    readonly id: string;
    readonly row: EventRows[Kind];
    /** The thing had states since its last event that the server did not see. */
    readonly skipped?: true;
  };
}[keyof EventRows];

/** What `Client.events` yields. After a `gap`, discard all rows that were collected so far. */
export type YardEvent =
  | Put
  /** The row does not exist any more, or the caller may not see it any more. */
  | { readonly type: "remove"; readonly kind: keyof EventRows; readonly id: string; readonly skipped?: true }
  /** Events were missed. Discard all rows: the existing ones follow, up to `synced`. */
  | { readonly type: "gap"; readonly why: string }
  /** All existing rows have been sent. */
  | { readonly type: "synced"; readonly complete: boolean }
  /** `complete` is false while the server cannot see the whole tree. */
  | { readonly type: "view"; readonly complete: boolean };

/** Milliseconds without an event after which a connection is considered lost. A server pings every 15 s. */
const SILENT_MS = 50_000;
/** Attempts to connect, about one minute. */
const TRIES = 12;
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;
/** Most characters of one event, which stops an endless answer. A row has far fewer. */
const MAX_EVENT = 16_000_000;

interface Outside {
  readonly clock: Clock;
  readonly random: Random;
  readonly signal?: AbortSignal;
}

/** Events of the streams that `open` opens. Each stream begins after the event with the id `last`. */
export async function* follow(
  open: (last: string | undefined, signal: AbortSignal) => Promise<Response>,
  { clock, random, signal }: Outside,
): AsyncGenerator<YardEvent, void, undefined> {
  let last: string | undefined;
  for (let attempt = 0; ; attempt++) {
    // Aborted by the caller's signal or by silence. Each connection has its own.
    const connection = new AbortController();
    const stop = () => connection.abort(signal?.reason);
    signal?.throwIfAborted();
    signal?.addEventListener("abort", stop, { once: true });
    let failure: unknown = new ClientError("client.unreachable", "the server ended the stream of events");
    try {
      const silence = watchdog(clock, connection);
      try {
        const reply = await open(last, connection.signal);
        for await (const { id, event } of eventsIn(reply, silence)) {
          last = id ?? last;
          attempt = 0;
          if (event !== undefined) yield event;
        }
      } finally {
        silence.end();
      }
    } catch (error) {
      failure = error;
    } finally {
      signal?.removeEventListener("abort", stop);
      connection.abort();
    }
    signal?.throwIfAborted();
    // A broken connection is temporary. A refusal is temporary only with these statuses.
    const isLasting = failure instanceof CallRefused && ![429, 502, 503, 504].includes(failure.status);
    if (isLasting || attempt >= TRIES) throw failure;
    const wait = failure instanceof CallRefused ? (failure.retryAfter ?? 0) * 1_000 : 0;
    await sleep(clock, Math.max(wait, backoff(random, attempt, FIRST_PAUSE_MS, MAX_PAUSE_MS)), signal);
  }
}

interface Watchdog {
  again(): void;
  end(): void;
}

/** Aborts a connection after silence. TCP alone takes hours to notice a server that vanished. */
function watchdog(clock: Clock, connection: AbortController): Watchdog {
  const bark = () =>
    connection.abort(
      new ClientError("client.unreachable", `no events and no pings for ${SILENT_MS / 1_000} s`),
    );
  let timer = clock.setTimer(SILENT_MS, bark);
  return {
    again() {
      timer.cancel();
      timer = clock.setTimer(SILENT_MS, bark);
    },
    end: () => timer.cancel(),
  };
}

interface Numbered {
  readonly id: string | undefined;
  /** Absent: only the id has advanced. */
  readonly event: YardEvent | undefined;
}

/** Parses WHATWG "Server-sent events" with lines that end in LF. */
async function* eventsIn({ body }: Response, silence: Watchdog): AsyncGenerator<Numbered, void, undefined> {
  if (body === null) return;
  let pending = "";
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    silence.again();
    const blocks = (pending + text).split("\n\n");
    pending = blocks.pop() ?? "";
    if (pending.length > MAX_EVENT)
      throw new ClientError(
        "client.bad_answer",
        "an event without an end: is the address that of a Nodeyard?",
      );
    for (const block of blocks) yield eventOf(block);
  }
}

function eventOf(block: string): Numbered {
  const fields = new Map(
    block
      .split("\n")
      .map(
        (line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trimStart()] as const,
      ),
  );
  const data = fields.get("data");
  const type = fields.get("event");
  const event = data === undefined || type === undefined ? undefined : { ...JSON.parse(data), type };
  return { id: fields.get("id"), event };
}
