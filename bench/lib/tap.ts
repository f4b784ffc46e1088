import { connect, createServer, type Socket } from "node:net";
import { wire } from "@nodeyard/zookeeper";

export interface TapCounts {
  /** Requests sent, pings and session handshakes not counted. */
  readonly packets: number;
  /** Operations in them; those inside a multi count one by one. */
  readonly subOperations: number;
  /** Number of requests of each kind. */
  readonly byOperation: Readonly<Record<string, number>>;
  /**
   * Longest chain of requests, each sent after the reply of the one before, up to the last write to a request record:
   * an upper bound for the sequential round trips until `fulfilled`.
   */
  readonly roundTrips: number;
}

/** A proxy that reads the traffic between launcher and server, and counts it without their help. */
export interface Tap extends AsyncDisposable {
  /** `host:port` to connect to. */
  readonly address: string;
  /** Counts since the last reset. */
  counts(): TapCounts;
  reset(): void;
  /** Holds back what the server sends, events included, until `resume`. */
  holdBack(): void;
  resume(): void;
}

const FRAME_LIMIT = 256 * 1024 * 1024;
const REQUEST_RECORD = /^\/nodepool\/requests\/[^/]+$/;

export async function startTap(target: string): Promise<Tap> {
  const [host, port] = target.split(":");
  const ledger = new Ledger();
  const servers = new Set<Socket>();
  const sockets = new Set<Socket>();
  const listener = createServer({ noDelay: true }, (client) => {
    const server = connect({ host: host!, port: Number(port), noDelay: true });
    servers.add(server);
    const requests = new wire.FrameSplitter(
      FRAME_LIMIT,
      afterFirst((...frame) => ledger.request(...frame)),
    );
    const replies = new wire.FrameSplitter(
      FRAME_LIMIT,
      afterFirst((...frame) => ledger.reply(...frame)),
    );
    client.on("data", (bytes) => {
      requests.push(bytes);
      server.write(bytes);
    });
    server.on("data", (bytes) => {
      replies.push(bytes);
      client.write(bytes);
    });
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        other.destroy();
        sockets.delete(one);
        servers.delete(one);
      });
    }
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const address = listener.address() as { port: number };
  return {
    address: `127.0.0.1:${address.port}`,
    counts: () => ledger.counts(),
    reset: () => ledger.reset(),
    holdBack: () => {
      for (const server of servers) server.pause();
    },
    resume: () => {
      for (const server of servers) server.resume();
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}

type OnFrame = (bytes: Buffer, start: number, end: number) => void;

/** The first frame either way is the session handshake, which has no header. */
function afterFirst(onFrame: OnFrame): OnFrame {
  let first = true;
  return (...frame) => {
    if (!first) onFrame(...frame);
    first = false;
  };
}

/** The counting, without sockets. */
export class Ledger {
  readonly #reader = new wire.JuteReader();
  #depths = new Map<number, number>();
  #answered = 0;
  #packets = 0;
  #subOperations = 0;
  #roundTrips = 0;
  #byOperation = new Map<string, number>();

  request(bytes: Buffer, start: number, end: number): void {
    this.#reader.reset(bytes, start, end);
    const { xid, type } = wire.requestHeader.read(this.#reader);
    if (type === wire.OpCode.ping || type === wire.OpCode.closeSession) return;
    const body = wire.readRequest(this.#reader, type);
    const operations = "ops" in body ? body.ops : [body];
    const name = wire.opName(type);
    const depth = this.#answered + 1;
    this.#packets++;
    this.#subOperations += operations.length;
    this.#byOperation.set(name, (this.#byOperation.get(name) ?? 0) + 1);
    this.#depths.set(xid, depth);
    if (operations.some((one) => one.type === wire.OpCode.setData && REQUEST_RECORD.test(one.path)))
      this.#roundTrips = depth;
  }

  reply(bytes: Buffer, start: number, end: number): void {
    this.#reader.reset(bytes, start, end);
    const { xid } = wire.replyHeader.read(this.#reader);
    const depth = this.#depths.get(xid);
    if (depth === undefined) return;
    this.#depths.delete(xid);
    this.#answered = Math.max(this.#answered, depth);
  }

  counts(): TapCounts {
    return {
      packets: this.#packets,
      subOperations: this.#subOperations,
      byOperation: Object.fromEntries(this.#byOperation),
      roundTrips: this.#roundTrips,
    };
  }

  reset(): void {
    this.#depths = new Map();
    this.#byOperation = new Map();
    this.#answered = this.#packets = this.#subOperations = this.#roundTrips = 0;
  }
}
