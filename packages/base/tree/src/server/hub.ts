import { timingSafeEqual } from "node:crypto";
import type { Clock } from "@nodeyard/runtime";
import { wire } from "@nodeyard/zookeeper";
import type { TreeCore } from "../embedded/core.ts";
import type { SessionRow } from "../embedded/store.ts";
import type { Caller, Identity } from "../engine/index.ts";
import type { ServerLimits } from "./limits.ts";
import type { Peer } from "./peer.ts";
import { type Watcher, WatchTable } from "./watches.ts";

/** Share of the sessions that TCP clients may use. The rest is reserved for the Unix socket, so that operators can always connect. */
const REMOTE_SHARE = 0.9;

/** One client, as the code that answers requests sees its connection. */
export interface Client extends Watcher, Caller {
  readonly peer: Peer;
  readonly session: SessionRow | undefined;
  readonly identities: readonly Identity[];
  /** Bytes that the client has not read yet, at the last measurement. */
  readonly queuedBytes: number;
  /** Replies and events that are not written yet. */
  readonly outstanding: number;
  /** Packets received on this connection. */
  readonly received: number;
  readonly sent: number;
  /** Wall time of the connection's start in ms. */
  readonly since: number;
  /** Adds an identity. False: the client has reached the limit of identities. */
  identify(identity: Identity): boolean;
  /** Answers a request from the present state. The reply is sent when that state is durable. */
  reply(xid: number, err: number, body?: (writer: wire.JuteWriter) => void): void;
  /** Sends the replies so far, then ends the connection. Further requests of the client are ignored. */
  finish(): void;
  /** Ends the connection at once and counts the reason. The session remains and expires unless the client reconnects. */
  cut(reason: string): void;
  /** Measures the connection's queue again; the hub keeps the sum. */
  lookAtQueue(): number;
}

/** State shared by the connections of one server. */
export class Hub {
  readonly core: TreeCore;
  readonly clock: Clock;
  readonly limits: ServerLimits;
  readonly watches = new WatchTable();
  /** One buffer, in which frames are assembled one after the other. */
  readonly writer = new wire.JuteWriter();
  readonly connections = new Set<Client>();
  /** Packets received since the start. */
  received = 0;
  sent = 0;
  /** The bound TCP port, if any. */
  port: number | undefined;
  /** Connections that the server ended, by reason. */
  readonly cuts = new Map<string, number>();
  readonly #attached = new Map<bigint, Client>();
  /** Bytes that all clients together have not read yet, at the last measurement. */
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

  /** Whether a new client is accepted: not above the limit, and not after the store has failed. */
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

  /** Opens a session with the timeout clamped to the limits; undefined when there are too many sessions. */
  openSession(wantedMs: number, local: boolean): SessionRow | undefined {
    const { maxSessions, minSessionTimeoutMs, maxSessionTimeoutMs } = this.limits;
    const most = local ? maxSessions : Math.ceil(maxSessions * REMOTE_SHARE);
    if (this.core.sessionCount("wire") >= most) return undefined;
    return this.core.openSession(
      "wire",
      Math.min(Math.max(wantedMs, minSessionTimeoutMs), maxSessionTimeoutMs),
    );
  }

  /** The session that a client asks to continue; undefined when it has expired or the password is wrong. */
  takeUp(id: bigint, password: Uint8Array): SessionRow | undefined {
    const session = this.core.session(id);
    if (session?.kind !== "wire" || session.password.length !== password.length) return undefined;
    if (!timingSafeEqual(session.password, password)) return undefined;
    this.core.touch(id);
    return session;
  }

  /** Binds the session to this connection and cuts its former connection. */
  attach(connection: Client, id: bigint): void {
    this.#attached.get(id)?.cut("moved");
    this.#attached.set(id, connection);
  }

  /** Ends a session at its client's request. The client still gets the reply. */
  closeSession(id: bigint, client: Client): void {
    if (this.#attached.get(id) === client) this.#attached.delete(id);
    this.core.closeSession(id);
  }

  /** The queue of a connection changed by `change` bytes. */
  queued(change: number): void {
    this.#queued += change;
    if (change <= 0 || this.#queued <= this.limits.maxQueuedBytesTotal) return;
    // Queues shrink without notice, so measure all of them before a client is cut.
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
