import type { ConnectionTarget } from "../connection-string.ts";
import {
  Aborted,
  AuthFailed,
  Closed,
  ConnectionLost,
  DeadlineExceeded,
  SessionExpired,
  ZooKeeperError,
} from "../errors.ts";
import { stripChroot } from "../paths.ts";
import type { AuthInfo, Endpoint, OpOptions, SessionInfo, SessionState, Status, Timer } from "../types.ts";
import type { ConnectRequest, ConnectResponse, WatcherEvent } from "../wire/messages.ts";
import { Xid } from "../wire/op-code.ts";
import type { Sums } from "./channel.ts";
import { Comparison, GOODBYE, NO_PASSWORD } from "./comparison.ts";
import { Connection } from "./connection.ts";
import { Dialer, type DialOutcome } from "./dialer.ts";
import { ANY_EPOCH, Pending } from "./pending.ts";
import { RequestQueue } from "./request-queue.ts";
import type { Settings } from "./settings.ts";
import { StatusBoard } from "./status-board.ts";
import { WatchRegistry } from "./watch-registry.ts";

/** Longest wait for the answer to a closeSession (milliseconds). */
const CLOSE_LIMIT = 5_000;

/**
 * The session of a client. It spans any number of connections; when the server expires it, a new session with the next epoch follows.
 *
 * It decides what a lost connection means for requests (sent ones fail with ConnectionLost, waiting ones wait), for locks
 * (`lastAnsweredSentAt`) and for watches (set again before any request). The dialer decides when and where to connect, a Connection
 * does one attempt.
 */
export class Session implements SessionInfo {
  readonly queue: RequestQueue;
  readonly watches: WatchRegistry = new WatchRegistry();
  readonly board: StatusBoard;
  /** Empty, or a path without a final "/". It precedes every path on the wire and is cut off every reply. */
  readonly chroot: string;
  readonly sums: Sums = {
    packetsSent: 0,
    packetsReceived: 0,
    bytesSent: 0,
    bytesReceived: 0,
    subOperations: 0,
    events: 0,
    connections: 0,
  };
  state: SessionState = "connecting";
  /** 0n while there is no session: before the first one and after an expired one. */
  id = 0n;
  /** Counts the sessions of this client from 1; 0 before the first. Requests that name an epoch are not sent in another one. */
  epoch = 0;
  /** As the server decided; before the first connection what was wished. */
  timeoutMs: number;
  readOnly = false;
  readonly #settings: Settings;
  readonly #dialer: Dialer;
  /** Credentials of the options and of `addAuth`, sent on every connection. */
  readonly #auth: AuthInfo[];
  #connection: Connection | undefined;
  /** By which a server knows that a client may continue the session. */
  #passwd: Uint8Array = NO_PASSWORD;
  /** Whether the session can be continued on another connection. */
  #rejoinable = false;
  /** Newest change that any reply has shown. A server that is behind it refuses the connection, so reads never go back in time. */
  #lastZxid = 0n;
  /** Of earlier connections: monotonic milliseconds at which the last answered request was sent. */
  #answeredSentAt = Number.NEGATIVE_INFINITY;
  readonly #comparison: Comparison;
  /** Set once `close` was called. */
  #closing: { readonly done: () => void; readonly promise: Promise<void> } | undefined;

  constructor(target: ConnectionTarget, settings: Settings) {
    this.#settings = settings;
    this.chroot = target.chroot;
    this.timeoutMs = settings.sessionTimeoutMs;
    this.#auth = [...settings.auth];
    this.queue = new RequestQueue(settings, () => this.epoch);
    this.#dialer = new Dialer(target.hosts, settings, {
      attempt: (endpoint, limitMs, done) =>
        this.#comparison.isDue(this.timeoutMs)
          ? this.#comparison.begin(endpoint, limitMs, this.#lastZxid, done)
          : this.#attempt(endpoint, limitMs, done),
      failed: (error) => this.#post(this.#comparison.found ?? error),
    });
    this.#comparison = new Comparison(
      settings,
      (limits, callbacks) =>
        new Connection(...limits, settings, this.chroot, this.#auth, this.sums, callbacks),
    );
    this.board = new StatusBoard(this.#status(false));
  }

  /**
   * Monotonic milliseconds at which the last answered request was sent. The server counted the session's timeout from that moment at the
   * earliest, so the session lives at least until then plus the timeout.
   */
  get lastAnsweredSentAt(): number {
    const now = this.#connection?.answeredSentAt ?? Number.NEGATIVE_INFINITY;
    return Math.max(this.#answeredSentAt, now);
  }

  /** Zxid of the last reply that carried one; -1n before the first. */
  get lastZxid(): bigint {
    const now = this.#connection?.channel.lastZxid ?? -1n;
    return now > this.#lastZxid ? now : this.#lastZxid || -1n;
  }

  /** Starts to connect, once. */
  start(): void {
    if (this.state !== "closed" && !this.#closing) this.#dialer.start();
  }

  /** Resolves when connected. Rejects when the client is closed, the deadline passes or the signal fires. */
  connected({ deadlineMs, signal }: Pick<OpOptions, "deadlineMs" | "signal">): Promise<void> {
    return new Promise((resolve, reject) => {
      let timer: Timer | undefined;
      const end = (error?: Error) => {
        timer?.cancel();
        unlisten();
        signal?.removeEventListener("abort", onAbort);
        if (error === undefined) resolve();
        else reject(error);
      };
      const onAbort = () => end(new Aborted({ op: "connect", cause: signal?.reason }));
      const unlisten = this.board.listen(({ state, cause }) => {
        if (state === "connected") end();
        else if (state === "closed") end(cause instanceof AuthFailed ? cause : new Closed({ op: "connect" }));
        else if (cause !== undefined) last = cause;
      });
      // Why it is not connected, for the error of a wait that ends without a connection.
      let last = this.board.current.cause;
      if (this.state === "connected") end();
      else if (this.state === "closed") end(last ?? new Closed({ op: "connect" }));
      else if (signal?.aborted) onAbort();
      else {
        signal?.addEventListener("abort", onAbort, { once: true });
        if (deadlineMs === undefined) return;
        const late = () => end(new DeadlineExceeded(deadlineMs, { op: "connect", cause: last }));
        timer = this.#settings.clock.setTimer(deadlineMs, late);
      }
    });
  }

  /** Replaces the servers for later connections; the present one stays. */
  setHosts(hosts: ConnectionTarget["hosts"]): void {
    this.#dialer.hosts = hosts;
  }

  /** Stores credentials for every later connection and sends them on the present one. */
  addAuth(info: AuthInfo, done: (error: ZooKeeperError | undefined) => void): void {
    this.#auth.push(info);
    const connection = this.state === "connected" ? this.#connection : undefined;
    if (connection === undefined) {
      done(undefined);
      return;
    }
    connection.authenticate(info, (error) => {
      done(error);
      // A server that refuses credentials closes the connection, and would do so on every later connection too.
      if (error instanceof AuthFailed) connection.end(error);
    });
  }

  /** Ends the session. Resolves when the server has confirmed it, or after CLOSE_LIMIT without an answer. */
  close(): Promise<void> {
    if (this.#closing !== undefined) return this.#closing.promise;
    if (this.state === "closed") return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#closing = { done: resolve, promise };
    // No new requests: closeSession must be the last one, because the server deletes the ephemeral znodes with it.
    this.#dialer.stop();
    this.queue.shut();
    const connection = this.#connection;
    if (this.state !== "connected" || connection === undefined) {
      this.#finish();
      return promise;
    }
    const limit = Math.min(CLOSE_LIMIT, this.timeoutMs);
    const timer: Timer = this.#settings.clock.setTimer(limit, () => this.#finish());
    const end = () => this.#finish();
    connection.channel.send(new Pending(GOODBYE, end, Number.POSITIVE_INFINITY, limit, ANY_EPOCH));
    return promise.finally(() => timer.cancel());
  }

  /** Connects to one server. `done` is called when the connection has ended, whether or not it ever was ready. */
  #attempt(endpoint: Endpoint, limitMs: number, done: (outcome: DialOutcome) => void): void {
    let reattached = false;
    let ready = false;
    let expired = false;
    const connection = new Connection(endpoint, limitMs, this.#settings, this.chroot, this.#auth, this.sums, {
      connectRequest: () => this.#connectRequest(),
      welcomed: (response) => {
        expired = response.timeOut <= 0 && this.#rejoinable;
        reattached = this.epoch > 0 && response.sessionId === this.id;
        return this.#welcomed(response);
      },
      ready: () => {
        ready = true;
        this.#ready(connection, reattached);
      },
      event: (event, zxid) => this.#event(event, zxid),
      room: () => this.queue.pump(),
      over: (cause) => {
        if (connection.unanswered && this.#rejoinable) this.#comparison.refused();
        this.#over(cause, ready, expired);
        done({ cause, ready, expired });
      },
    });
    this.#connection = connection;
  }

  /** Asks to continue the session, or for a new one. */
  #connectRequest(): ConnectRequest {
    return {
      protocolVersion: 0,
      lastZxidSeen: this.#lastZxid,
      timeOut: Math.round(this.#settings.sessionTimeoutMs),
      sessionId: this.#rejoinable ? this.id : 0n,
      passwd: this.#rejoinable ? this.#passwd : NO_PASSWORD,
      readOnly: this.#settings.allowReadOnly,
    };
  }

  /** Takes the server's answer. Returns an error when the session has expired or the server is not acceptable. */
  #welcomed(response: ConnectResponse): Error | undefined {
    this.#comparison.forget();
    if (response.timeOut <= 0) return new SessionExpired({ op: "connect" });
    if (response.readOnly && !this.#settings.allowReadOnly) {
      return new ZooKeeperError(
        "zookeeper.read_only_server",
        "the server is read-only and allowReadOnly is off",
      );
    }
    if (this.epoch === 0 || response.sessionId !== this.id) {
      this.epoch++;
      this.#answeredSentAt = Number.NEGATIVE_INFINITY;
      // Only the server that issued a read-only session knows it, so another server could not continue it.
      this.#rejoinable = !response.readOnly;
    }
    this.id = response.sessionId;
    this.#passwd = response.passwd;
    this.timeoutMs = response.timeOut;
    this.readOnly = response.readOnly;
    return undefined;
  }

  /** Sets the watches of the former connection again, then lets waiting requests go. */
  #ready(connection: Connection, reattached: boolean): void {
    this.sums.connections++;
    const most = this.#settings.maxRequestBytes;
    for (const request of this.watches.reattach(this.#lastZxid, most, this.chroot.length)) {
      connection.channel.sendControl(Xid.setWatches, request);
    }
    this.state = "connected";
    this.#post(undefined, reattached);
    // A listener may have closed the client.
    if (this.#connection === connection) this.queue.attach(connection.channel);
  }

  /** The zxid is that of the change from ZooKeeper 3.9 on, and -1n before. */
  #event(event: WatcherEvent, zxid: bigint): void {
    this.watches.dispatch(event.type, stripChroot(this.chroot, event.path), zxid);
  }

  /** A connection has ended. `ready`: the session was connected. `expired`: the server said that the session does not exist any more. */
  #over(cause: Error, ready: boolean, expired: boolean): void {
    this.#remember();
    this.#connection = undefined;
    if (cause instanceof AuthFailed) {
      this.#dialer.stop();
      this.#finish(cause);
    } else if (this.#closing) this.#finish();
    else if (expired) this.#expired(cause);
    else if (ready) {
      this.#suspended(cause);
      if (!this.#rejoinable) this.#expired(cause);
    }
  }

  /** Disconnected. The session may live on; the outcome of requests that were sent is unknown. */
  #suspended(cause: Error): void {
    this.state = "suspended";
    this.#post(cause);
    // After the listeners, so that they know of the suspended session when their requests fail.
    this.queue.detach((pending) => new ConnectionLost(pending.details(cause)));
  }

  /** The session is over, and its ephemeral znodes with it. Requests that waited for a connection fail: they were meant for that session. */
  #expired(cause: Error): void {
    const waiting = this.queue.takeWaiting();
    // The session is known to be lost, so locks are not trusted any more, not even until a new session begins (rule 1).
    this.#answeredSentAt = Number.NEGATIVE_INFINITY;
    this.state = "expired";
    this.#post(cause);
    this.id = 0n;
    this.#rejoinable = false;
    for (const pending of waiting) pending.settle(new SessionExpired(pending.details()), undefined);
    this.watches.expire();
    if (this.#closing) return;
    this.state = "connecting";
    this.#post();
  }

  /** Ends the client for good. */
  #finish(cause?: Error): void {
    if (this.state === "closed") return;
    this.#remember();
    const connection = this.#connection;
    this.#connection = undefined;
    this.state = "closed";
    // Requests fail before the listeners learn of the end, and the connection goes last: closing it sends what was written.
    this.queue.close(cause);
    connection?.close();
    this.#comparison.close();
    this.watches.expire();
    this.#post(cause ?? new Closed({ op: "session" }));
    this.#closing?.done();
  }

  /** Keeps the facts that outlive a connection: the last zxid and the send time of the last answered request. */
  #remember(): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    this.#answeredSentAt = Math.max(this.#answeredSentAt, connection.answeredSentAt);
    const zxid = connection.channel.lastZxid;
    if (zxid > this.#lastZxid) this.#lastZxid = zxid;
  }

  /** Reports the present state to the listeners. */
  #post(cause?: Error, reattached = false): void {
    this.board.post(this.#status(reattached, cause));
  }

  #status(reattached: boolean, cause?: Error): Status {
    return {
      state: this.state,
      epoch: this.epoch,
      sessionId: this.id,
      readOnly: this.readOnly,
      reattached,
      ...(cause === undefined ? {} : { cause }),
    };
  }
}
