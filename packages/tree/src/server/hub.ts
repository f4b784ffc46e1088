import { timingSafeEqual } from "node:crypto";
import type { Clock } from "@nodeyard/runtime";
import { wire } from "@nodeyard/zookeeper";
import type { TreeCore } from "../embedded/core.ts";
import type { SessionRow } from "../embedded/store.ts";
import type { Caller, Identity } from "../engine/index.ts";
import type { ServerLimits } from "./limits.ts";
import type { Peer } from "./peer.ts";
import { type Watcher, WatchTable } from "./watches.ts";

/** Share of the sessions that clients on TCP may have; the rest is kept for the Unix socket. */
const REMOTE_SHARE = 0.9;

/** One client, as those who answer it see its connection. */
export interface Client extends Watcher, Caller {
  readonly peer: Peer;
  readonly session: SessionRow | undefined;
  readonly identities: readonly Identity[];
  /** What the client has not taken, bytes, as last looked at. */
  readonly queuedBytes: number;
  /** Answers and events that are not written yet. */
  readonly outstanding: number;
  /** Packets of this connection. */
  readonly received: number;
  readonly sent: number;
  /** Wall time of its arrival, ms. */
  readonly since: number;
  /** False: the client has proved to be as many as it may. */
  identify(identity: Identity): boolean;
  /** Answers a request with what is true now; it leaves when that is durable. */
  reply(xid: number, err: number, body?: (writer: wire.JuteWriter) => void): void;
  /** Sends what was answered so far, then ends the connection. What the client says after this is not listened to. */
  finish(): void;
  /** Ends the connection at once; the reason is counted. The session stays, and times out unless taken up again. */
  cut(reason: string): void;
  /** Looks at the queue anew; the hub keeps the sum. */
  lookAtQueue(): number;
}

/** What the connections of one server share. */
export class Hub {
  readonly core: TreeCore;
  readonly clock: Clock;
  readonly limits: ServerLimits;
  readonly watches = new WatchTable();
  /** Frames are put together here one after the other; none stays. */
  readonly writer = new wire.JuteWriter();
  readonly connections = new Set<Client>();
  /** Packets since the start. */
  received = 0;
  sent = 0;
  /** The TCP port, once there is one. */
  port: number | undefined;
  /** Connections that the server ended, by reason. */
  readonly cuts = new Map<string, number>();
  readonly #attached = new Map<bigint, Client>();
  /** Bytes that connections have not taken, all together, as last looked at. */
  #queued = 0;
  readonly #unsubscribe: (() => void)[];

  constructor(core: TreeCore, clock: Clock, limits: ServerLimits) {
    this.core = core;
    this.clock = clock;
    this.limits = limits;
    this.#unsubscribe = [
      core.onEvents((events) => {
        for (const event of events) this.watches.trigger(event.type, event.path, event.acl);
      }),
      core.onFailure(() => this.#cutAll("store")),
      core.onSessionClosed((id) => this.#attached.get(id)?.cut("expired")),
    ];
  }

  /** Whether one more client is let in: not when there are too many, or the store has failed. */
  admits(peer: Peer): boolean {
    let present = 0;
    for (const { peer: other } of this.connections) if (other.local === peer.local) present++;
    const failed = this.core.failure !== undefined;
    const admitted = !failed && present < this.limits.maxConnections;
    if (!admitted) this.counted(failed ? "store" : "connections");
    return admitted;
  }

  left(connection: Client): void {
    this.connections.delete(connection);
    this.#queued -= connection.queuedBytes;
    const id = connection.session?.id;
    if (id !== undefined && this.#attached.get(id) === connection) this.#attached.delete(id);
  }

  /** A new session, its timeout clamped; undefined when there are too many. */
  openSession(wantedMs: number, local: boolean): SessionRow | undefined {
    const { maxSessions, minSessionTimeoutMs, maxSessionTimeoutMs } = this.limits;
    const most = local ? maxSessions : Math.ceil(maxSessions * REMOTE_SHARE);
    if (this.core.sessionCount("wire") >= most) return undefined;
    return this.core.openSession(
      "wire",
      Math.min(Math.max(wantedMs, minSessionTimeoutMs), maxSessionTimeoutMs),
    );
  }

  /** The session that a client says it has; undefined when it is over or the client cannot prove it. */
  takeUp(id: bigint, password: Uint8Array): SessionRow | undefined {
    const session = this.core.session(id);
    if (session?.kind !== "wire" || session.password.length !== password.length) return undefined;
    if (!timingSafeEqual(session.password, password)) return undefined;
    this.core.touch(id);
    return session;
  }

  /** From now on the session speaks through this connection alone. */
  attach(connection: Client, id: bigint): void {
    this.#attached.get(id)?.cut("moved");
    this.#attached.set(id, connection);
  }

  /** Ends a session at its client's wish; `client` still gets its answer. */
  closeSession(id: bigint, client: Client): void {
    if (this.#attached.get(id) === client) this.#attached.delete(id);
    this.core.closeSession(id);
  }

  /** A connection's queue has changed by so much. */
  queued(change: number): void {
    this.#queued += change;
    if (change <= 0 || this.#queued <= this.limits.maxQueuedBytesTotal) return;
    // Queues shrink without a word, so look again before anyone is cut.
    let worst: Client | undefined;
    this.#queued = 0;
    for (const connection of this.connections) {
      this.#queued += connection.lookAtQueue();
      if (worst === undefined || connection.queuedBytes > worst.queuedBytes) worst = connection;
    }
    if (this.#queued > this.limits.maxQueuedBytesTotal) worst?.cut("slow");
  }

  counted(reason: string): void {
    this.cuts.set(reason, (this.cuts.get(reason) ?? 0) + 1);
  }

  close(): void {
    for (const end of this.#unsubscribe) end();
    this.#cutAll("shutdown");
  }

  #cutAll(reason: string): void {
    for (const connection of [...this.connections]) connection.cut(reason);
  }
}
