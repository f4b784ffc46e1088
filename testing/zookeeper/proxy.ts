import { connect, createServer, type Server, type Socket } from "node:net";
import { EventDropper } from "./event-dropper.ts";

/** Which way bytes flow. */
export type Direction = "to-server" | "to-client";

/** A TCP proxy that forwards everything until it is asked to fail. */
export interface TcpProxy {
  readonly host: string;
  readonly port: number;
  /** Bytes forwarded so far. */
  readonly bytes: Readonly<Record<Direction, number>>;
  /** Connections open now. */
  readonly connections: number;
  /** Connections accepted so far. */
  readonly accepted: number;
  /**
   * Forwards `count` more bytes in that direction, then cuts the connection that carries the next one. Once only.
   * Resolves when it has cut.
   */
  cutAfter(direction: Direction, count: number): Promise<void>;
  /** Cuts all connections now. */
  cut(): void;
  /** Holds back the bytes of these directions (default: both), on present and future connections, until `resume`. */
  stall(...directions: Direction[]): void;
  resume(): void;
  /** While true, watch events do not arrive, and everything else does. For a proxy started with `frames`. */
  steal(on: boolean): void;
  /** Watch events that did not arrive. */
  readonly dropped: number;
  /** While true, new connections are closed at once. */
  refuse(on: boolean): void;
  close(): Promise<void>;
}

interface Link {
  readonly client: Socket;
  readonly server: Socket;
}

interface Cut {
  readonly direction: Direction;
  left: number;
  readonly done: () => void;
}

/**
 * Starts a proxy on a free loopback port in front of `target`. With `frames` it forwards what a ZooKeeper server sends in whole
 * frames, and can drop watch events from them.
 */
export async function startProxy(
  target: { readonly host: string; readonly port: number },
  { frames = false }: { readonly frames?: boolean } = {},
): Promise<TcpProxy> {
  const links = new Set<Link>();
  const bytes: Record<Direction, number> = { "to-server": 0, "to-client": 0 };
  const stalled = new Set<Direction>();
  let cutting: Cut | undefined;
  let refusing = false;
  let dropping = false;
  let dropped = 0;
  let accepted = 0;

  function drop(link: Link): void {
    links.delete(link);
    link.client.destroy();
    link.server.destroy();
  }

  function forward(link: Link, direction: Direction, data: Buffer): void {
    const [from, to] = direction === "to-server" ? [link.client, link.server] : [link.server, link.client];
    if (cutting?.direction === direction) {
      if (cutting.left < data.length) {
        const { left, done } = cutting;
        cutting = undefined;
        bytes[direction] += left;
        links.delete(link);
        from.destroy();
        to.end(data.subarray(0, left));
        done();
        return;
      }
      cutting.left -= data.length;
    }
    bytes[direction] += data.length;
    if (!to.write(data)) {
      from.pause();
      to.once("drain", () => apply(link));
    }
  }

  function honest(dropper: EventDropper | undefined, data: Buffer): Buffer {
    if (dropper === undefined) return data;
    const before = dropper.dropped;
    const through = dropper.pass(data);
    dropped += dropper.dropped - before;
    return through;
  }

  function apply(link: Link): void {
    if (stalled.has("to-server")) link.client.pause();
    else link.client.resume();
    if (stalled.has("to-client")) link.server.pause();
    else link.server.resume();
  }

  const listener = createServer({ noDelay: true }, (client) => {
    if (refusing) {
      client.destroy();
      return;
    }
    accepted++;
    const server = connect({ host: target.host, port: target.port, noDelay: true });
    const dropper = frames ? new EventDropper(() => dropping) : undefined;
    const link = { client, server };
    links.add(link);
    client.on("data", (data) => forward(link, "to-server", data));
    server.on("data", (data) => forward(link, "to-client", honest(dropper, data)));
    for (const socket of [client, server]) {
      socket.on("error", () => drop(link));
      socket.on("close", () => drop(link));
    }
    apply(link);
  });
  await listen(listener);
  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");

  return {
    host: "127.0.0.1",
    port: address.port,
    bytes,
    get connections() {
      return links.size;
    },
    get accepted() {
      return accepted;
    },
    cutAfter: (direction, count) =>
      new Promise((resolve) => {
        cutting = { direction, left: count, done: resolve };
      }),
    cut: () => {
      for (const link of [...links]) drop(link);
    },
    stall: (...directions) => {
      const which: readonly Direction[] = directions.length > 0 ? directions : ["to-server", "to-client"];
      for (const direction of which) stalled.add(direction);
      for (const link of links) apply(link);
    },
    resume: () => {
      stalled.clear();
      for (const link of links) apply(link);
    },
    steal: (on) => {
      dropping = on;
    },
    get dropped() {
      return dropped;
    },
    refuse: (on) => {
      refusing = on;
    },
    close: () =>
      new Promise((resolve) => {
        for (const link of [...links]) drop(link);
        listener.close(() => resolve());
      }),
  };
}

function listen(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
}
