import { abortable, type Clock, defined, messageOf, type Timer } from "@nodeyard/runtime";
import { CallRefused, LeaseFailed, LeaseLost } from "./errors.ts";
import type { EventQuery, YardEvent } from "./events.ts";
import type { Operations } from "./generated/operations.ts";
import type { Arguments, CallOptions, OperationId, Reply } from "./operation.ts";

/** What a lease needs of a client. */
interface Calls {
  call<Id extends OperationId>(id: Id, ...rest: Arguments<Id>): Promise<Reply<Id>>;
  events(query: EventQuery, options: Pick<CallOptions, "signal">): AsyncGenerator<YardEvent, void, undefined>;
}

/** A lease as the API shows it. */
export type LeaseRow = Reply<"get_leases">;
/** Address and credentials of a node. */
export type NodeAccess = Reply<"list_lease_nodes">["items"][number];
/** State in which the nodes are given back. */
export type Verdict = NonNullable<Operations["release_lease"]["body"]["verdict"]>;
/** Labels and duration of a lease. A heartbeat is needed every 60 s unless `heartbeat_seconds` is given. */
export type LeaseWish = Operations["create_lease"]["body"];

const HEARTBEAT_SECONDS = 60;
/** Heartbeats per interval: two of three may be lost. */
const PER_HEARTBEAT = 3;
/** Longest timer, milliseconds. A lease may be extended meanwhile, so its end is computed again after each. */
const MAX_TIMER_MS = 3_600_000;

/** Nodes that are held as long as this process lives and sends heartbeats. Made by `client.lease`. */
export class Lease implements AsyncDisposable {
  /** Aborts with LeaseLost when the lease has ended and the nodes may belong to someone else. */
  readonly signal: AbortSignal;
  /** Verdict at the end of the scope (`await using`). */
  verdict: Verdict = "ok";
  readonly #client: Calls;
  readonly #clock: Clock;
  readonly #lost = new AbortController();
  readonly #ready = Promise.withResolvers<void>();
  /** Monotonic time of the request for the lease. */
  readonly #asked: number;
  /** The server's time then, milliseconds. */
  readonly #begun: number;
  #row: LeaseRow;
  #timer: Timer | undefined;
  /** Monotonic time at which the last answered heartbeat was sent. */
  #answeredAt: number;
  #ended: Promise<void> | undefined;

  /** `isResumed`: the row is the answer to a heartbeat, which set the expiry by the server's clock; else to the call that made the lease. */
  constructor(client: Calls, clock: Clock, row: LeaseRow, asked: number, isResumed = false) {
    this.#client = client;
    this.#clock = clock;
    this.#row = row;
    this.#answeredAt = asked;
    this.#asked = asked;
    const { created, expires, heartbeat_seconds: seconds } = row;
    this.#begun = isResumed ? Date.parse(expires ?? "") - (seconds ?? 0) * 1_000 : Date.parse(created ?? "");
    this.signal = this.#lost.signal;
    this.#ready.promise.catch(() => {});
    this.#take(row);
    this.#schedule();
  }

  get id(): string {
    return this.#row.id;
  }

  /** The lease as the server last reported it. */
  get row(): LeaseRow {
    return this.#row;
  }

  /** Addresses of its nodes, in the order of its labels. */
  async nodes(): Promise<readonly NodeAccess[]> {
    return (await this.#client.call("list_lease_nodes", { path: { id: this.id } })).items;
  }

  /** Keeps the nodes for `seconds` from now. */
  async extend(seconds: number, why?: string): Promise<void> {
    const body = { for_seconds: seconds, ...defined({ why }) };
    this.#take(await this.#client.call("extend_lease", { path: { id: this.id }, body }));
  }

  /**
   * Says for which job of a CI it is, and notes a text of up to 4,096 characters for whoever continues this client's work (`row.data`).
   * No secrets.
   */
  async describe(facts: NonNullable<Operations["heartbeat_lease"]["body"]>): Promise<void> {
    this.#take(await this.#client.call("heartbeat_lease", { path: { id: this.id }, body: facts }));
  }

  /**
   * Gives the nodes back. A lease that has already ended is no error. `commit`: the job ended well, so that what it leaves in caches of its
   * nodes serves later jobs.
   */
  end(verdict: Verdict = this.verdict, why?: string, commit = false): Promise<void> {
    this.#ended ??= this.#release({ verdict, ...(commit && { commit }), ...defined({ why }) }).catch(
      (error: unknown) => {
        // The caller may try again. Otherwise the lease expires, because no more heartbeats are sent.
        this.#ended = undefined;
        throw error;
      },
    );
    return this.#ended;
  }

  /** Sends no more heartbeats, and leaves the lease to another process, or to its end. */
  leave(): void {
    this.#timer?.cancel();
    this.#ended ??= Promise.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  async #release(body: NonNullable<Operations["release_lease"]["body"]>): Promise<void> {
    this.#timer?.cancel();
    this.#ready.reject(new LeaseLost(`lease ${this.id} was given back`));
    await this.#client.call("release_lease", { path: { id: this.id }, body }).catch((error: unknown) => {
      if (!isGone(error)) throw error;
    });
  }

  /** Resolves when the nodes are ready. Events report this at once; when they do not arrive, the answers to heartbeats do, later. */
  async arrived(signal: AbortSignal | undefined): Promise<void> {
    const over = new AbortController();
    const stop = () => this.#ready.reject(signal?.reason);
    if (signal?.aborted === true) stop();
    signal?.addEventListener("abort", stop, { once: true });
    const following = this.#follow(over.signal).catch(() => {});
    try {
      await this.#ready.promise;
    } finally {
      signal?.removeEventListener("abort", stop);
      over.abort();
      await following;
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    let isThere = false;
    for await (const event of this.#client.events({ kinds: "lease", id: this.id }, { signal })) {
      if (event.type === "gap") isThere = false;
      if (event.type === "put" && event.kind === "lease") {
        isThere = true;
        this.#take(event.row);
      }
      if (event.type === "remove" || (event.type === "synced" && event.complete && !isThere))
        this.#lose("it is gone");
    }
  }

  #take(row: LeaseRow): void {
    this.#row = row;
    if (row.state === "granted") this.#ready.resolve();
    else if (row.state === "released") this.#lose("it was released");
    else if (row.state === "failed")
      this.#ready.reject(
        new LeaseFailed(
          `lease ${row.id} failed: every pool declined ${row.labels.join(", ")}; "nodeyard explain ${row.request ?? row.id}" says why`,
        ),
      );
  }

  #lose(why: string, cause?: unknown): void {
    this.#timer?.cancel();
    if (this.#ended !== undefined || this.signal.aborted) return;
    const error = new LeaseLost(`lease ${this.id} is lost: ${why}; its nodes may be another's already`, {
      cause,
    });
    this.#ready.reject(error);
    this.#lost.abort(error);
  }

  /** When the lease ends without a heartbeat, and when in any case, by this process's monotonic clock. Rounded towards too early. */
  #ends(): { readonly heartbeatMs: number | null; readonly silentAt: number; readonly over: number } {
    const { heartbeat_seconds: seconds, until } = this.#row;
    const heartbeatMs = seconds === null ? null : seconds * 1_000;
    const length = Date.parse(until ?? "") - this.#begun;
    return {
      heartbeatMs,
      silentAt: heartbeatMs === null ? Number.POSITIVE_INFINITY : this.#answeredAt + heartbeatMs,
      over: Number.isFinite(length) ? this.#asked + length : Number.POSITIVE_INFINITY,
    };
  }

  #schedule(): void {
    if (this.#ended !== undefined || this.signal.aborted) return;
    const now = this.#clock.monotonic();
    const { heartbeatMs, silentAt, over } = this.#ends();
    if (silentAt <= now) return this.#lose("no heartbeat was answered in time");
    if (over <= now) return this.#lose("its time is over");
    const usual = heartbeatMs === null ? MAX_TIMER_MS : heartbeatMs / PER_HEARTBEAT;
    const pause = Math.min(usual, silentAt - now, over - now);
    // A background timer: a lease that the program forgot must not keep the process alive.
    this.#timer = this.#clock.setTimer(pause, () => void this.#beat(), { background: true });
  }

  async #beat(): Promise<void> {
    const sent = this.#clock.monotonic();
    const { heartbeatMs, silentAt, over } = this.#ends();
    const left = Math.min(silentAt, over) - sent;
    if (heartbeatMs !== null && left > 0)
      try {
        const row = await this.#client.call(
          "heartbeat_lease",
          { path: { id: this.id } },
          { timeoutMs: left },
        );
        this.#answeredAt = sent;
        this.#take(row);
      } catch (error) {
        if (isGone(error)) return this.#lose(messageOf(error), error);
      }
    this.#schedule();
  }
}

/** The server says that the lease has ended. */
function isGone(error: unknown): boolean {
  return error instanceof CallRefused && (error.status === 404 || error.status === 409);
}

/** Requests nodes and resolves when they are ready. */
export async function acquire(
  client: Calls,
  clock: Clock,
  wish: LeaseWish,
  { signal, key }: { readonly signal?: AbortSignal; readonly key?: string },
): Promise<Lease> {
  const asked = clock.monotonic();
  const body = { heartbeat_seconds: HEARTBEAT_SECONDS, ...wish };
  signal?.throwIfAborted();
  const making = client.call("create_lease", { body }, defined({ key }));
  const row = await (signal === undefined ? making : abortable(making, signal)).catch((error: unknown) => {
    // A call that is under way may take effect: its lease must not wait for its first heartbeat in vain.
    void making.then(({ id }) => client.call("release_lease", { path: { id }, body: {} })).catch(() => {});
    throw error;
  });
  const lease = new Lease(client, clock, row, asked);
  try {
    await lease.arrived(signal);
    return lease;
  } catch (error) {
    // The caller gets no lease, so it cannot release it. When this call fails, the lease expires without heartbeats.
    await lease.end().catch(() => {});
    throw error;
  }
}

/** Takes over a lease of another process, with a heartbeat at once. */
export async function resume(
  client: Calls,
  clock: Clock,
  id: string,
  { signal }: { readonly signal?: AbortSignal },
): Promise<Lease> {
  const asked = clock.monotonic();
  const row = await client.call("heartbeat_lease", { path: { id }, body: {} }, defined({ signal }));
  const lease = new Lease(client, clock, row, asked, true);
  try {
    await lease.arrived(signal);
    return lease;
  } catch (error) {
    lease.leave();
    throw error;
  }
}
