import type { Clock, Random } from "@nodeyard/runtime";
import type { Tree } from "../contract.ts";
import type { DataTree } from "../engine/index.ts";
import { RemoteTree } from "../remote/remote-tree.ts";
import { MAX_REQUEST_BYTES } from "../request-size.ts";
import type { CallInfo } from "./call.ts";
import type { Fault } from "./options.ts";
import { MemoryPort } from "./port.ts";
import { type AppliedWrite, type FollowerOptions, MemoryServer } from "./server.ts";

/** Options of a simulated tree: its clock, its randomness, its delays and its faults. One seed yields one history. */
export interface MemoryTreeOptions {
  readonly clock: Clock;
  readonly random: Random;
  /**
   * Range of the delay of each packet in milliseconds, drawn from `random`. Events, replies and reads then interleave in every
   * way that ZooKeeper allows: states are skipped, and two paths are seen at different moments. Without it packets arrive in
   * microtasks and no time passes.
   */
  readonly latencyMs?: readonly [least: number, most: number];
  /** Range of the time from a broken connection to the next one; default 50 to 150 ms. */
  readonly reconnectMs?: readonly [least: number, most: number];
  /** Called for every call when it is sent; returns the fault that the call suffers. */
  readonly faults?: (call: CallInfo) => Fault;
  /** Called for every event to a client; true drops the event. ZooKeeper never does that, but a broken proxy may. */
  readonly losesEvent?: (client: string, path: string) => boolean;
  /**
   * Servers that apply commits later than the leader. Each new connection goes to a different server, whose reads and events the client
   * then sees. A session never sees an older state than one of its replies showed, its own writes included; a write whose reply was lost
   * may be missing. Without it every client is connected to the leader.
   */
  readonly followers?: FollowerOptions;
  /** Longest write in bytes; default 1,048,575. */
  readonly maxRequestBytes?: number;
  /** How far the tree's clock is ahead of the clients' clocks in ms; default 0. */
  readonly skewMs?: number;
  /** Whether `log` records applied writes; default true. */
  readonly keepLog?: boolean;
}

/** Options of one client of a simulated tree. */
export interface MemoryConnectOptions {
  /** Name of the client in the log and in faults; default "client-<number>". */
  readonly name?: string;
  /** Clock of the client, whose wall time may differ from the tree's; default: the tree's clock. */
  readonly clock?: Clock;
  /** Default 10,000. */
  readonly sessionTimeoutMs?: number;
  /** As `MemoryTreeOptions.latencyMs`, for this client only. */
  readonly latencyMs?: readonly [least: number, most: number];
  /** As for a ZooKeeper tree; default 0: feeds compare themselves at once after a reconnect. */
  readonly resyncSpreadMs?: number;
}

/** The tree of one client process, with methods for its faults. */
export interface MemoryTree extends Tree {
  readonly name: string;
  /** Breaks the connection. It reconnects by itself, with `held` only after `reconnect`. */
  disconnect(held?: boolean): void;
  reconnect(): void;
  /** Ends the session at the server, as a timeout would. */
  expire(): void;
  /**
   * Pauses the process: it receives nothing until `thaw`, and the server expires its session after the timeout. The owner of
   * the client's clock must also stop its timers.
   */
  freeze(): void;
  thaw(): void;
  /** Kills the process: none of its calls ever settles, and the server expires the session after its timeout. */
  crash(): void;
}

/** A tree in memory, shared by several simulated processes. */
export interface MemoryCluster {
  /** The znodes of the leader, for inspection. */
  readonly znodes: Pick<DataTree, "stat" | "data" | "children" | "zxid" | "size" | "ephemerals">;
  /** Every applied change, in order. */
  readonly log: readonly AppliedWrite[];
  connect(options?: MemoryConnectOptions): MemoryTree;
}

/** Makes an empty tree in memory. The same clock, seed and calls yield the same history. */
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
        losesEvent: (path) => options.losesEvent?.(name, path) ?? false,
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
