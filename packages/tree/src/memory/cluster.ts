import type { Clock, Random } from "@nodeyard/runtime";
import type { Tree } from "../contract.ts";
import type { DataTree } from "../engine/index.ts";
import { RemoteTree } from "../remote/remote-tree.ts";
import { MAX_REQUEST_BYTES } from "../request-size.ts";
import type { CallInfo } from "./call.ts";
import type { Fault } from "./options.ts";
import { MemoryPort } from "./port.ts";
import { type AppliedWrite, type FollowerOptions, MemoryServer } from "./server.ts";

/** A simulated tree: its clock, its chance, and how it delays and fails. One seed gives one history. */
export interface MemoryTreeOptions {
  readonly clock: Clock;
  readonly random: Random;
  /**
   * Least and greatest time of each packet in milliseconds, drawn from `random`. Events, replies and reads then meet in
   * every order that ZooKeeper allows: states are skipped, and two paths are seen at different moments. Absent: packets
   * arrive at once, in microtasks, and no time passes.
   */
  readonly latencyMs?: readonly [least: number, most: number];
  /** Time from a broken connection to the next one; default 50 to 150 ms. */
  readonly reconnectMs?: readonly [least: number, most: number];
  /** Asked for every call when it is sent. */
  readonly faults?: (call: CallInfo) => Fault;
  /** Called for every event that a client is to get: true loses it, as no ZooKeeper does but a broken proxy may. */
  readonly losesEvent?: (client: string) => boolean;
  /**
   * Servers that carry out what was committed later than the leader does. Each connection is to another server than the one before: its
   * reads and events are that server's. A session never sees less than it saw in an answer, its own writes included; a write whose
   * reply was lost it may not see. Absent: every client is connected to the leader.
   */
  readonly followers?: FollowerOptions;
  /** Longest write, bytes; default 1,048,575. */
  readonly maxRequestBytes?: number;
  /** How far the tree's clock is ahead of the clients', ms; default 0. */
  readonly skewMs?: number;
  /** Whether applied writes are kept in `log`; default true. */
  readonly keepLog?: boolean;
}

/** One client of a simulated tree. */
export interface MemoryConnectOptions {
  /** Names the client in the log and in faults; default "client-<number>". */
  readonly name?: string;
  /** The client's own clock, whose wall time may differ from the tree's; default: the tree's. */
  readonly clock?: Clock;
  /** Default 10,000. */
  readonly sessionTimeoutMs?: number;
  /** See `MemoryTreeOptions.latencyMs`, for this client alone. */
  readonly latencyMs?: readonly [least: number, most: number];
  /** Default 0: feeds compare themselves at once after a reconnect. */
  readonly resyncSpreadMs?: number;
}

/** The tree of one client process, with the faults that it can suffer. */
export interface MemoryTree extends Tree {
  readonly name: string;
  /** Breaks the connection; it comes back by itself, unless `held`: then with `reconnect` only. */
  disconnect(held?: boolean): void;
  reconnect(): void;
  /** Ends the session at the server, as its timeout would. */
  expire(): void;
  /**
   * The process stands still: it receives nothing until `thaw`, and the tree ends its session when its timeout has passed.
   * That the process's timers do not fire meanwhile is up to whoever owns its clock.
   */
  freeze(): void;
  thaw(): void;
  /** The process dies: none of its calls ever settles, and the server finds out by the session's timeout. */
  crash(): void;
}

/** A tree in memory that several simulated processes share. */
export interface MemoryCluster {
  /** The znodes as they are, for looking at. */
  readonly znodes: Pick<DataTree, "stat" | "data" | "children" | "zxid" | "size" | "ephemerals">;
  /** Every change that was applied, in order. */
  readonly log: readonly AppliedWrite[];
  connect(options?: MemoryConnectOptions): MemoryTree;
}

/** Makes an empty tree in memory. The same clock, seed and calls give the same course of events. */
export function createMemoryTree(options: MemoryTreeOptions): MemoryCluster {
  const { clock, random, maxRequestBytes = MAX_REQUEST_BYTES, skewMs = 0, keepLog = true } = options;
  const server = new MemoryServer(clock, skewMs, keepLog, options.followers);
  const reconnectMs = span(options.reconnectMs ?? [50, 150], random);
  let clients = 0;
  return {
    znodes: server.tree,
    log: server.log,
    connect: (connect = {}) => {
      const name = connect.name ?? `client-${++clients}`;
      const latencyMs = connect.latencyMs ?? options.latencyMs;
      const own = connect.clock ?? clock;
      const port = new MemoryPort({
        client: name,
        clock: own,
        network: clock,
        server,
        capabilities: { shared: true, durable: false, maxRequestBytes },
        sessionTimeoutMs: connect.sessionTimeoutMs ?? 10_000,
        reconnectMs,
        choose: (count) => (count < 2 ? 0 : Math.floor(count * random.float())),
        latency: latencyMs && span(latencyMs, random),
        fault: options.faults ?? (() => undefined),
        losesEvent: () => options.losesEvent?.(name) ?? false,
      });
      return new ClientTree(name, port, { clock: own, random, resyncSpreadMs: connect.resyncSpreadMs ?? 0 });
    },
  };
}

class ClientTree extends RemoteTree implements MemoryTree {
  readonly name: string;
  readonly #port: MemoryPort;

  constructor(name: string, port: MemoryPort, options: ConstructorParameters<typeof RemoteTree>[1]) {
    super(port, options);
    this.name = name;
    this.#port = port;
  }

  disconnect(held = false): void {
    this.#port.disconnect(held);
  }

  reconnect(): void {
    this.#port.connect();
  }

  expire(): void {
    this.#port.expire();
  }

  freeze(): void {
    this.#port.freeze();
  }

  thaw(): void {
    this.#port.thaw();
  }

  crash(): void {
    this.#port.crash();
  }
}

function span([least, most]: readonly [number, number], random: Random): () => number {
  return () => least + (most - least) * random.float();
}
