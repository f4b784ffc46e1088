import { errorFromCode, ProtocolError, TooLarge, type ZooKeeperError } from "../errors.ts";
import type { Counters, Endpoint, Link } from "../types.ts";
import { readResponse, writeRequest } from "../wire/codec.ts";
import { FrameSplitter } from "../wire/frames.ts";
import {
  type ConnectRequest,
  connectRequest,
  type Request,
  type Response,
  type WatcherEvent,
  watcherEvent,
} from "../wire/messages.ts";
import { ErrorCode, opName, Xid } from "../wire/op-code.ts";
import { JuteReader } from "../wire/reader.ts";
import { JuteWriter } from "../wire/writer.ts";
import { chrootRequest, unchrootResponse } from "./chroot.ts";
import type { Pending } from "./pending.ts";
import { Ring } from "./ring.ts";
import type { Settings } from "./settings.ts";

/** A burst above this leaves before its turn ends, so that the server can begin. */
const FLUSH_BYTES = 128 * 1024;
const LAST_XID = 0x7fffffff;

/** What a channel tells the session. */
export interface ChannelCallbacks {
  opened(): void;
  /** The first frame: the answer to the connect request. */
  handshake(reader: JuteReader): void;
  /** Answer to a ping, an addauth or a setWatches. */
  control(xid: number, err: number): void;
  event(event: WatcherEvent, zxid: bigint): void;
  /** Replies came, or the link took what was written: there may be room for more. */
  room(): void;
  /** Never called after `close`. */
  closed(cause: Error | undefined): void;
}

export type Sums = { -readonly [K in keyof Counters]: Counters[K] };

/**
 * One connection: frames that leave together, replies matched to requests in order. It knows nothing of sessions
 * beyond their frames.
 */
export class Channel {
  readonly inFlight: Ring<Pending> = new Ring();
  lastReceivedAt: number;
  lastSentAt: number;
  /** When the last answered request was sent. */
  answeredSentAt = Number.NEGATIVE_INFINITY;
  /** The link has not taken everything yet. */
  congested = false;
  readonly #settings: Settings;
  readonly #chroot: string;
  readonly #callbacks: ChannelCallbacks;
  readonly #sums: Sums;
  readonly #link: Link;
  readonly #splitter: FrameSplitter;
  readonly #writer = new JuteWriter();
  readonly #reader = new JuteReader();
  readonly #flush: () => void;
  #scheduled = false;
  #turnAt = 0;
  #xid = 0;
  #shaken = false;
  #closed = false;
  #zxidHigh = 0;
  #zxidLow = 0;

  constructor(
    endpoint: Endpoint,
    settings: Settings,
    chroot: string,
    sums: Sums,
    callbacks: ChannelCallbacks,
  ) {
    this.#settings = settings;
    this.#chroot = chroot;
    this.#callbacks = callbacks;
    this.#sums = sums;
    this.lastSentAt = settings.clock.monotonic();
    this.lastReceivedAt = this.lastSentAt;
    this.#splitter = new FrameSplitter(settings.maxResponseBytes, (bytes, start, end) =>
      this.#onFrame(bytes, start, end),
    );
    this.#flush = () => {
      this.#scheduled = false;
      this.#writeOut();
    };
    this.#link = settings.connector.open(endpoint, {
      opened: () => callbacks.opened(),
      received: (bytes, length) => this.#received(bytes, length),
      drained: () => {
        this.congested = false;
        callbacks.room();
      },
      closed: (cause) => this.close(cause, true),
    });
  }

  /** The zxid of the last reply, -1n when there was none. */
  get lastZxid(): bigint {
    if (this.#zxidHigh === 0 && this.#zxidLow === 0) return -1n;
    return (BigInt(this.#zxidHigh) << 32n) | BigInt(this.#zxidLow);
  }

  /** Whether another request may be handed over. */
  get hasRoom(): boolean {
    return this.inFlight.size < this.#settings.maxInFlight && !this.congested;
  }

  /** Monotonic time of this turn of the event loop; what is sent in it leaves at its end. */
  turn(): number {
    if (!this.#scheduled) {
      this.#scheduled = true;
      this.#turnAt = this.#settings.clock.monotonic();
      this.#settings.connector.defer(this.#flush);
    }
    return this.#turnAt;
  }

  sendConnect(request: ConnectRequest): void {
    this.turn();
    const mark = this.#writer.beginFrame();
    connectRequest.write(this.#writer, request);
    this.#writer.endFrame(mark);
  }

  /** Sends a request whose reply carries one of the special xids. */
  sendControl(xid: number, request: Request): number {
    const now = this.turn();
    this.#encode(xid, request);
    return now;
  }

  /** Sends an operation. Throws TooLarge, or what the encoding throws, with nothing sent. */
  send(pending: Pending): void {
    const now = this.turn();
    const xid = nextXid(this.#xid);
    this.#encode(xid, pending.request);
    this.#xid = xid;
    pending.xid = xid;
    pending.sentAt = now;
    this.inFlight.push(pending);
  }

  /** Ends the connection; nothing more is reported afterwards. With `report`, `callbacks` is called once. */
  close(cause?: Error, report = false): void {
    if (this.#closed) return;
    if (!report) this.#writeOut();
    this.#closed = true;
    this.#splitter.stop();
    this.#link.destroy();
    if (report) this.#callbacks.closed(cause);
  }

  #encode(xid: number, request: Request): void {
    const writer = this.#writer;
    const mark = writer.beginFrame();
    writer.int(xid);
    writer.int(request.type);
    try {
      writeRequest(writer, chrootRequest(this.#chroot, request));
    } catch (error) {
      writer.length = mark;
      throw error;
    }
    const size = writer.endFrame(mark);
    if (size > this.#settings.maxRequestBytes) {
      writer.length = mark;
      throw new TooLarge(size, this.#settings.maxRequestBytes, detailsOf(request));
    }
    const parts = "ops" in request ? request.ops.length : 1;
    this.#sums.packetsSent++;
    this.#sums.subOperations += parts;
    this.#settings.hooks.packetSent?.(request.type, size + 4, parts);
    if (writer.length > FLUSH_BYTES) this.#writeOut();
  }

  #writeOut(): void {
    const writer = this.#writer;
    if (writer.length === 0 || this.#closed) return;
    this.lastSentAt = this.#turnAt;
    this.#sums.bytesSent += writer.length;
    if (this.#link.write(writer.written())) {
      writer.reset();
    } else {
      this.congested = true;
      writer.renew();
    }
  }

  #received(bytes: Buffer, length: number): void {
    if (this.#closed) return;
    this.lastReceivedAt = this.#settings.clock.monotonic();
    this.#sums.bytesReceived += length;
    try {
      this.#splitter.push(bytes, length);
    } catch (error) {
      this.close(error as Error, true);
      return;
    }
    if (!this.#closed) this.#callbacks.room();
  }

  #onFrame(bytes: Buffer, start: number, end: number): void {
    const reader = this.#reader;
    reader.reset(bytes, start, end);
    this.#sums.packetsReceived++;
    if (!this.#shaken) {
      this.#shaken = true;
      this.#callbacks.handshake(reader);
      return;
    }
    const xid = reader.int();
    const zxidHigh = reader.int();
    const zxidLow = reader.int() >>> 0;
    const err = reader.int();
    this.#settings.hooks.packetReceived?.(xid, end - start + 4);
    if (xid > 0) {
      // Replies that answer no transaction carry 0 or -1.
      if (zxidHigh > 0 || (zxidHigh === 0 && zxidLow > 0)) {
        this.#zxidHigh = zxidHigh;
        this.#zxidLow = zxidLow;
      }
      this.#reply(xid, err, reader);
    } else if (xid === Xid.event) {
      this.#sums.events++;
      this.#callbacks.event(watcherEvent.read(reader), (BigInt(zxidHigh) << 32n) | BigInt(zxidLow));
    } else {
      this.#callbacks.control(xid, err);
    }
  }

  /** A reply that makes no sense leaves its operation in flight, to end with the connection. */
  #reply(xid: number, err: number, reader: JuteReader): void {
    const pending = this.inFlight.peek();
    if (pending === undefined || pending.xid !== xid) {
      throw new ProtocolError(`reply ${xid} where ${pending?.xid ?? "none"} was due`);
    }
    let response: Response | undefined;
    if (err === ErrorCode.ok && !pending.settled) {
      response = readResponse(reader, pending.request.type);
      if (this.#chroot !== "") response = unchrootResponse(this.#chroot, response);
    }
    this.inFlight.shift();
    this.answeredSentAt = pending.sentAt;
    const { hooks } = this.#settings;
    if (hooks.roundTrip !== undefined) {
      hooks.roundTrip(pending.request.type, this.lastReceivedAt - pending.sentAt, err);
    }
    if (response !== undefined) pending.settle(undefined, response);
    else if (!pending.settled) pending.settle(errorOf(err, pending), undefined);
  }
}

/** Xids of operations are positive and begin anew after the last; 0 and below have meanings of their own. */
export function nextXid(xid: number): number {
  return xid === LAST_XID ? 1 : xid + 1;
}

/** The server has decided: the outcome is known, unless it says itself that it isn't. */
function errorOf(err: number, pending: Pending): ZooKeeperError {
  return errorFromCode(err, detailsOf(pending.request));
}

function detailsOf(request: Request): { op: string; path?: string } {
  return "path" in request ? { op: opName(request.type), path: request.path } : { op: opName(request.type) };
}
