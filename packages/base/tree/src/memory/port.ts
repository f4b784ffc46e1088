import type { Timer } from "@nodeyard/runtime";
import type {
  CallOptions,
  Op,
  OpResult,
  Session,
  SessionState,
  Stat,
  TreeCapabilities,
} from "../contract.ts";
import { ConnectionLost, SessionExpired, TreeClosed, type TreeError } from "../errors.ts";
import type { Found, Port, PortEvent, Reply } from "../remote/port.ts";
import { requestBytes } from "../request-size.ts";
import { Call, type CallInfo } from "./call.ts";
import type { Fault, MemoryPortOptions, Watching } from "./options.ts";
import type { Replica } from "./replica.ts";
import { Wire } from "./wire.ts";

/**
 * The client's side of a simulated connection. Tests and the simulation put a `RemoteTree` on it, so that the code above the port is
 * that of production and only the network and the servers are simulated.
 *
 * It reproduces what callers must survive: calls that are lost before or after the server applied them, lost events, servers that are
 * behind, expired sessions, a frozen and a killed process. All time comes from `clock` and `network`, all chance from the options, so a
 * run can be repeated.
 */
export class MemoryPort implements Port {
  readonly capabilities: TreeCapabilities;
  readonly #options: MemoryPortOptions;
  readonly #listeners = new Set<(session: Session) => void>();
  readonly #watches = new Set<Watching>();
  /** Calls without a connection, in the order in which they were made. They are sent when the next one stands. */
  #waiting: Call[] = [];
  /** Calls that were sent and not answered. They fail when their connection ends. */
  #inFlight = new Set<Call>();
  /** Carries messages to the server. */
  #up: Wire;
  /** Carries messages from the server. One wire for each direction keeps their order, as TCP does. */
  #down: Wire;
  /** The server of the present or the last connection. */
  #replica: Replica;
  /** Zxid of the newest answer. The client connects to no server that is behind it. Events carry no zxid before ZooKeeper 3.9. */
  #seen = 0n;
  /** Number of the present connection. Messages of an earlier connection are dropped. */
  #link = 0;
  /** Id of the present session, or of the last one after its end. */
  #id = 0n;
  /** Grows with each session of this port. Locks of an earlier epoch are lost. */
  #epoch = 0;
  #state: SessionState = "connecting";
  /**
   * When the newest request that was answered was sent, monotonic milliseconds. The server has had a sign of life at that time or
   * later.
   */
  #lastContact = Number.NEGATIVE_INFINITY;
  /** Ends a pause between two connections. */
  #reconnect: Timer | undefined;
  /** The test keeps the client disconnected until it calls `connect`. */
  #held = false;
  /** The process was killed. */
  #dead = false;
  /** True from freezing until the first answer after thawing: no ping may be assumed in that time. */
  #silent = false;
  /** Messages that arrived while the client was frozen; undefined when it is not frozen. */
  #arrived: (() => void)[] | undefined;
  /** What happened to the connection while the client was frozen; it learns of it when it thaws. */
  #later: "connect" | "disconnect" | "disconnect, held" | undefined;
  /** Tree time minus the client's clock, milliseconds, as of the last answered write. */
  #offset = 0;

  constructor(options: MemoryPortOptions) {
    this.#options = options;
    this.capabilities = options.capabilities;
    this.#replica = options.server.serversFor(0n)[0]!;
    this.#up = this.#wire();
    this.#down = this.#wire();
    this.connect();
  }

  session(): Session {
    const { clock, sessionTimeoutMs } = this.#options;
    // Pings are not simulated. While connected, the client is assumed to have had an answer within the last third of the timeout.
    const pinged = this.#silent ? Number.NEGATIVE_INFINITY : clock.monotonic() - sessionTimeoutMs / 3;
    const contact = this.#state === "connected" ? Math.max(this.#lastContact, pinged) : this.#lastContact;
    const over = this.#state === "closed" || this.#state === "expired";
    return {
      id: this.#id,
      epoch: this.#epoch,
      state: this.#state,
      trustedUntil: over ? Number.NEGATIVE_INFINITY : contact + (2 / 3) * sessionTimeoutMs,
    };
  }

  onSession(listener: (session: Session) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** 0 before the first answered write, as with ZooKeeper: only writes show the server's time. */
  clockOffset(): number {
    return this.#offset;
  }

  /** A write on an expired session is answered with SessionExpired and outcome "none". */
  write(ops: readonly Op[], reply: Reply<readonly OpResult[]>, options: CallOptions | undefined): void {
    const { server, clock } = this.#options;
    // Copied, because the server keeps the data and the caller may change its buffer.
    const own = ops.map((op) =>
      "data" in op && op.data !== undefined ? { ...op, data: new Uint8Array(op.data) } : op,
    );
    const run = () => {
      const answer = server.write(this.#id, own);
      // A server answers a write, also a refused one, only after it has applied everything decided before that write.
      this.#replica.catchUp();
      if (answer.error !== undefined) return answer.error;
      const offset = server.now() - clock.now();
      return () => {
        this.#offset = offset;
        reply(undefined, answer.results);
      };
    };
    this.#call("write", ops[0]?.path ?? "", own, run, reply, options);
  }

  get(path: string, reply: Reply<Found>, options?: CallOptions): void {
    this.#read("get", path, reply, options, () => {
      const { tree } = this.#replica;
      const stat = tree.stat(path);
      return stat && { data: new Uint8Array(tree.data(path) ?? []), stat };
    });
  }

  stat(path: string, reply: Reply<Stat>, options?: CallOptions): void {
    this.#read("stat", path, reply, options, () => this.#replica.tree.stat(path));
  }

  children(path: string, reply: Reply<readonly string[]>, options?: CallOptions): void {
    this.#read("children", path, reply, options, () => this.#replica.tree.children(path));
  }

  sync(path: string, reply: Reply<true>, options?: CallOptions): void {
    this.#read("sync", path, reply, options, () => {
      this.#replica.catchUp();
      return true as const;
    });
  }

  /** `onReady` is called each time the watch stands, so also after each reconnect: events in between are lost. */
  watch(root: string, onEvent: (event: PortEvent) => void, onReady: () => void): () => Promise<void> {
    const watching: Watching = { root, onEvent, onReady, stop: undefined };
    this.#watches.add(watching);
    const run = () => {
      if (!this.#watches.has(watching)) return () => {};
      this.#stand(watching);
      return onReady;
    };
    // A watch that is lost with its connection is set again, with all others, on the next one.
    // The call itself reports no failure: a feed learns of a lost connection by the state of the session.
    if (this.#state === "connected") this.#call("watch", root, [], run, () => {}, undefined);
    return async () => {
      this.#watches.delete(watching);
      watching.stop?.();
    };
  }

  /** Ends the session at the server at once; calls that were not answered fail with TreeClosed. A second call does nothing. */
  async close(): Promise<void> {
    if (this.#state === "closed" || this.#dead) return;
    const { server } = this.#options;
    this.#reconnect?.cancel();
    this.#cut((call) => new TreeClosed(call.what, call.outcome));
    for (const call of this.#waiting.splice(0)) call.fail(new TreeClosed(call.what));
    // The simulated server is reached without the wire: an orderly end is not lost.
    server.end(this.#id);
    this.#become("closed");
  }

  /** Breaks the connection. It reconnects by itself, with `held` only after `connect`. */
  disconnect(held = false): void {
    if (this.#dead || this.#state === "closed") return;
    if (this.#arrived !== undefined) {
      this.#later = held ? "disconnect, held" : "disconnect";
      return;
    }
    this.#held = held;
    this.#reconnect?.cancel();
    const lost = this.#sever();
    // In the order of the ZooKeeper client: first the change of state, then the failures of the calls on the connection.
    if (this.#state === "connected") {
      this.#options.server.detach(this.#id);
      this.#become("suspended");
    }
    for (const call of lost) call.fail(new ConnectionLost(call.what, undefined, call.outcome));
    if (!this.#held)
      this.#reconnect = this.#options.clock.setTimer(this.#options.reconnectMs(), () => this.connect(), {
        background: true,
      });
  }

  /** Connects now. The session continues if the server still has it. */
  connect(): void {
    if (this.#arrived !== undefined) {
      if (this.#state !== "connected") this.#later = "connect";
      else if (this.#later !== undefined) this.#later = "disconnect";
      return;
    }
    if (this.#dead || this.#state === "connected" || this.#state === "closed") return;
    const { server, client, sessionTimeoutMs, clock } = this.#options;
    this.#held = false;
    this.#reconnect?.cancel();
    if (this.#epoch > 0 && !server.has(this.#id)) {
      // As in the ZooKeeper client: calls that waited for the connection belong to the expired session.
      const waiting = this.#waiting.splice(0);
      this.#become("expired");
      for (const call of waiting) call.fail(new SessionExpired(call.what, undefined, call.outcome));
    }
    if (!server.has(this.#id)) {
      this.#id = server.open(client, sessionTimeoutMs);
      this.#epoch++;
      this.#choose();
      // Opening a session is a transaction, and the server has applied it when it answers.
      this.#replica.catchUp();
    } else this.#choose();
    server.attach(this.#id);
    this.#silent = false;
    this.#lastContact = clock.monotonic();
    for (const watching of this.#watches) this.#stand(watching);
    this.#become("connected");
    const link = this.#link;
    for (const watching of this.#watches) if (link === this.#link) watching.onReady();
    for (const call of this.#waiting.splice(0)) this.#send(call);
  }

  /** Chooses another server than before, among those that are not behind what the client has seen. */
  #choose(): void {
    const fit = this.#options.server.serversFor(this.#seen);
    const others = fit.filter((replica) => replica !== this.#replica);
    this.#replica = others[this.#options.choose(others.length)] ?? fit[0]!;
  }

  /** The server ends the session and the connection. */
  expire(): void {
    const { server } = this.#options;
    this.#cut((call) => new SessionExpired(call.what, undefined, call.outcome));
    server.end(this.#id);
    this.disconnect();
  }

  /** Pauses the process: arriving messages wait, and the server receives no pings. */
  freeze(): void {
    if (this.#dead || this.#state === "closed") return;
    this.#arrived ??= [];
    if (this.#state !== "connected") return;
    const { clock, sessionTimeoutMs, server } = this.#options;
    this.#lastContact = Math.max(this.#lastContact, clock.monotonic() - sessionTimeoutMs / 3);
    this.#silent = true;
    server.detach(this.#id);
  }

  /**
   * Delivers the messages that arrived meanwhile. The next answer shows whether the session lives; an expired session lost its connection.
   */
  thaw(): void {
    const { server } = this.#options;
    const arrived = this.#arrived ?? [];
    const later = this.#later;
    this.#arrived = undefined;
    this.#later = undefined;
    if (this.#dead) return;
    if (later === "connect") return this.connect();
    if (this.#state !== "connected") return;
    for (const arrive of arrived) arrive();
    if (later !== undefined) return this.disconnect(later === "disconnect, held");
    if (!server.has(this.#id)) return this.disconnect();
    server.attach(this.#id);
    this.sync("/", () => {});
  }

  /** Kills the process: its calls never settle and it receives nothing. The server expires the session after its timeout. */
  crash(): void {
    if (this.#dead || this.#state === "closed") return;
    this.#dead = true;
    this.#reconnect?.cancel();
    this.#listeners.clear();
    for (const call of [...this.#inFlight, ...this.#waiting]) call.forget();
    this.#waiting = [];
    this.#inFlight.clear();
    for (const watching of this.#watches) watching.stop?.();
    // Messages that were sent before the crash still arrive at the server.
    this.#options.server.detach(this.#id);
  }

  #read<T>(
    kind: CallInfo["kind"],
    path: string,
    reply: Reply<T>,
    options: CallOptions | undefined,
    look: () => T | undefined,
  ): void {
    const run = () => {
      const value = look();
      return () => reply(undefined, value);
    };
    this.#call(kind, path, [], run, reply, options);
  }

  #call(
    kind: CallInfo["kind"],
    path: string,
    ops: readonly Op[],
    run: () => (() => void) | TreeError,
    reply: (error: TreeError | undefined, value: undefined) => void,
    options: CallOptions | undefined,
  ): void {
    if (this.#dead) return;
    const { client, clock } = this.#options;
    if (this.#state === "closed") {
      reply(new TreeClosed(`${kind} ${path}`), undefined);
      return;
    }
    const call = new Call(
      { client, kind, path, ops },
      run,
      (error) => reply(error, undefined),
      clock,
      options,
    );
    if (this.#state === "connected") this.#send(call);
    else this.#waiting.push(call);
  }

  #send(call: Call): void {
    // Its deadline or signal came first. What was not sent must not take effect later.
    if (call.ended) return;
    if (this.#state !== "connected") {
      this.#waiting.push(call);
      return;
    }
    call.sent = true;
    call.sentAt = this.#options.clock.monotonic();
    this.#inFlight.add(call);
    const fault = this.#options.fault(call.info);
    const delay = typeof fault === "object" ? fault.delayMs : 0;
    this.#over(this.#up, () => this.#serve(call, fault), delay);
  }

  /** The call arrives at the server. A lost request was not applied and a lost reply was; the client cannot tell the two apart. */
  #serve(call: Call, fault: Fault): void {
    if (fault === "lose-request") return this.disconnect();
    // As ZooKeeper does for a request above `jute.maxbuffer`: it closes the connection, and all calls on it are lost.
    if (requestBytes(call.info.ops) > this.capabilities.maxRequestBytes) return this.disconnect();
    const answer = call.run();
    if (fault === "lose-reply") return this.disconnect();
    const { zxid } = this.#replica.tree;
    this.#tell(() => {
      if (zxid > this.#seen) this.#seen = zxid;
      this.#inFlight.delete(call);
      this.#lastContact = Math.max(this.#lastContact, call.sentAt);
      this.#silent = false;
      if (typeof answer === "function") call.answer(answer);
      else call.fail(answer);
    });
  }

  /** Delivers a message unless its connection has ended by then. */
  #over(wire: Wire, arrive: () => void, delayMs = 0): void {
    const link = this.#link;
    wire.send(() => {
      if (link === this.#link) arrive();
    }, delayMs);
  }

  #tell(arrive: () => void): void {
    this.#over(this.#down, () => {
      if (this.#dead) return;
      if (this.#arrived === undefined) arrive();
      else this.#arrived.push(arrive);
    });
  }

  /** Sets a watch at the present server. It ends with the connection. */
  #stand(watching: Watching): void {
    const { root, onEvent } = watching;
    const prefix = root === "/" ? "/" : `${root}/`;
    watching.stop?.();
    watching.stop = this.#replica.onEvent((event) => {
      if (event.path !== root && !event.path.startsWith(prefix)) return;
      if (!this.#options.losesEvent(event.path)) this.#tell(() => onEvent(event));
    });
  }

  /** Ends the connection; each call in flight fails with the error that is made for it. */
  #cut(error: (call: Call) => TreeError | undefined): void {
    for (const call of this.#sever()) {
      const why = error(call);
      if (why !== undefined) call.fail(why);
    }
  }

  /** Ends the connection and returns the calls that were in flight. */
  #sever(): Call[] {
    this.#link++;
    this.#up = this.#wire();
    this.#down = this.#wire();
    for (const watching of this.#watches) watching.stop?.();
    if (this.#arrived !== undefined) this.#arrived = [];
    const lost = [...this.#inFlight];
    this.#inFlight = new Set();
    return lost;
  }

  #wire(): Wire {
    return new Wire(this.#options.network, this.#options.latency);
  }

  /** Listeners are copied, because one that is called may unsubscribe itself or others. */
  #become(state: SessionState): void {
    this.#state = state;
    const session = this.session();
    for (const tell of [...this.#listeners]) tell(session);
  }
}
