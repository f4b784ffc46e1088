import { connect, createServer, type Socket } from "node:net";
import { wire } from "@nodeyard/zookeeper";

const WRITES: ReadonlySet<number> = new Set([
  wire.OpCode.create,
  wire.OpCode.create2,
  wire.OpCode.delete,
  wire.OpCode.setData,
  wire.OpCode.multi,
]);
/** A packet begins with its length, a request then with xid and operation, a reply with the xid. */
const LENGTH_BYTES = 4;

export interface ReplyDroppingProxy {
  readonly port: number;
  /** Writes seen since the last `arm` or `disarm`. */
  readonly writes: number;
  /** Whether the reply was dropped. */
  readonly dropped: boolean;
  /** Counts writes from now on, and cuts the connection in place of the reply to the n-th one. */
  arm(n: number): void;
  disarm(): void;
  close(): Promise<void>;
}

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  /** Set once the write whose reply is to be dropped has been sent. */
  wanted: number | undefined;
  /** The first packet each way opens the session and has no xid. */
  greeted: { client: boolean; server: boolean };
}

/** A proxy in front of a ZooKeeper server that reads packets and drops one reply that the server has sent. */
export async function startReplyDroppingProxy(target: {
  readonly host: string;
  readonly port: number;
}): Promise<ReplyDroppingProxy> {
  const links = new Set<Link>();
  const state = { n: 0, writes: 0, dropped: false };

  function onRequest(link: Link, packet: Buffer): void {
    if (!link.greeted.client) {
      link.greeted.client = true;
    } else if (WRITES.has(packet.readInt32BE(LENGTH_BYTES + 4)) && ++state.writes === state.n) {
      link.wanted = packet.readInt32BE(LENGTH_BYTES);
    }
    link.server.write(packet);
  }

  function onReply(link: Link, packet: Buffer): void {
    const greeting = !link.greeted.server;
    link.greeted.server = true;
    if (!greeting && link.wanted !== undefined && packet.readInt32BE(LENGTH_BYTES) === link.wanted) {
      state.dropped = true;
      drop(link);
      return;
    }
    link.client.write(packet);
  }

  function drop(link: Link): void {
    links.delete(link);
    link.client.destroy();
    link.server.destroy();
  }

  const listener = createServer({ noDelay: true }, (client) => {
    const server = connect({ ...target, noDelay: true });
    const link: Link = { client, server, wanted: undefined, greeted: { client: false, server: false } };
    links.add(link);
    client.on(
      "data",
      packets((packet) => onRequest(link, packet)),
    );
    server.on(
      "data",
      packets((packet) => links.has(link) && onReply(link, packet)),
    );
    for (const socket of [client, server]) socket.on("error", () => drop(link)).on("close", () => drop(link));
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const { port } = listener.address() as { port: number };
  const arm = (n: number) => {
    Object.assign(state, { n, writes: 0, dropped: false });
  };
  return {
    port,
    get writes() {
      return state.writes;
    },
    get dropped() {
      return state.dropped;
    },
    arm,
    disarm: () => arm(0),
    close: () =>
      new Promise((resolve) => {
        for (const link of [...links]) drop(link);
        listener.close(() => resolve());
      }),
  };
}

/** Cuts a stream into whole packets. */
function packets(take: (packet: Buffer) => void): (data: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (data) => {
    rest = rest.length === 0 ? data : Buffer.concat([rest, data]);
    while (rest.length >= LENGTH_BYTES) {
      const length = LENGTH_BYTES + rest.readInt32BE(0);
      if (rest.length < length) return;
      take(rest.subarray(0, length));
      rest = rest.subarray(length);
    }
  };
}
