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

/** More bytes than this are sent before the turn of the event loop ends, so that the server can start on them. */
const FLUSH_BYTES = 128 * 1024;
/** Xids are signed 32-bit numbers on the wire. */
const LAST_XID = 0x7fffffff;

/** What a channel reports to the session. */
export interface ChannelCallbacks {
  opened(): void;
  /** The first frame: the answer to the connect request. */
  handshake(reader: JuteReader): void;
  /** Answer to a ping, an addauth or a setWatches. */
  control(xid: number, err: number): void;
  event(event: WatcherEvent, zxid: bigint): void;
  /** Replies arrived, or the link accepted pending bytes: there may be room for more requests. */
  room(): void;
  /** Never called after `close`. */
  closed(cause: Error | undefined): void;
}

/** Counters of the whole client, which each of its channels adds to. */
export type Sums = { -readonly [K in keyof Counters]: Counters[K] };

/**
 * One connection: it sends the frames of one turn together and matches replies to requests in order. Of sessions it knows only their
 * frames.
 *
 * The server answers requests in their order, so the oldest request in flight must have the xid of the next reply. A frame that is too
 * long, cannot be read or has another xid ends the connection: nothing behind it can be trusted.
 */
export class Channel {
  /** Sent and not answered, the oldest first. Settled ones stay until their reply, which keeps its place in the order. */
  readonly inFlight: Ring<Pending> = new Ring();
  /** Monotonic milliseconds, as all times here. From these two the heartbeat decides when to ping and when the server is silent. */
  lastReceivedAt: number;
  lastSentAt: number;
  /** When the last answered request was sent. Trust in locks counts from this time (rule 1). */
  answeredSentAt = Number.NEGATIVE_INFINITY;
  /** The link has not yet accepted all bytes. */
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
  /** A write is due at the end of this turn. */
  #scheduled = false;
  /** Monotonic time at which this turn began: the send time of all its requests. */
  #turnAt = 0;
  /** Of the last operation. */
  #xid = 0;
  /** The first frame has come. It has no reply header, all others have one. */
  #shaken = false;
  #closed = false;
  /** Halves of the zxid of the last reply that had one: numbers, because a bigint would be allocated for each reply. */
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

  /** The zxid of the last reply; -1n before the first. */
  get lastZxid(): bigint {
    if (this.#zxidHigh === 0 && this.#zxidLow === 0) return -1n;
    return (BigInt(this.#zxidHigh) << 32n) | BigInt(this.#zxidLow);
  }

  /** Whether another request may be sent now. */
  get hasRoom(): boolean {
    return this.inFlight.size < this.#settings.maxInFlight && !this.congested;
  }

  /** Monotonic time of this turn of the event loop. Everything sent within one turn is written at its end, in one system call. */
  turn(): number {
    if (!this.#scheduled) {
      this.#scheduled = true;
      this.#turnAt = this.#settings.clock.monotonic();
      this.#settings.connector.defer(this.#flush);
    }
    return this.#turnAt;
  }

  /** Sends the first frame, which has no header. */
  sendConnect(request: ConnectRequest): void {
    this.turn();
    const mark = this.#writer.beginFrame();
    connectRequest.write(this.#writer, request);
    this.#writer.endFrame(mark);
  }

  /** Sends a request whose reply carries one of the special xids. Returns the send time. */
  sendControl(xid: number, request: Request): number {
    const now = this.turn();
    this.#encode(xid, request);
    return now;
  }

  /** Sends an operation. Throws TooLarge or an encoding error; nothing is sent then. */
  send(pending: Pending): void {
    const now = this.turn();
    const xid = nextXid(this.#xid);
    this.#encode(xid, pending.request);
    this.#xid = xid;
    pending.xid = xid;
    pending.sentAt = now;
    this.inFlight.push(pending);
  }

  /** Ends the connection. With `report`, `callbacks.closed` is called once; without it, no callback follows. */
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
      // Takes the half-written frame back, so that the connection stays usable.
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
      // The link still reads from this buffer.
      writer.renew();
    }
  }

  /** Handles what one read of the socket brought. A reply's callback may close the channel, which stops the splitter. */
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
      // Replies that belong to no transaction carry a zxid of 0 or -1.
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

  /** An unexpected reply ends the connection (ProtocolError). Its operation stays in flight and fails with the connection. */
  #reply(xid: number, err: number, reader: JuteReader): void {
    const pending = this.inFlight.peek();
    if (pending === undefined || pending.xid !== xid) {
      throw new ProtocolError(`reply ${xid} where ${pending?.xid ?? "none"} was due`);
    }
    let response: Response | undefined;
    // A reply that nobody waits for is not decoded.
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

/** Operations have positive xids and start again at 1 after the largest. Zero and negative xids have special meanings. */
export function nextXid(xid: number): number {
  return xid === LAST_XID ? 1 : xid + 1;
}

/** The server answered, so the outcome is known, unless the code itself means that it is not (see UNKNOWN_OUTCOME). */
function errorOf(err: number, pending: Pending): ZooKeeperError {
  return errorFromCode(err, detailsOf(pending.request));
}

function detailsOf(request: Request): { op: string; path?: string } {
  return "path" in request ? { op: opName(request.type), path: request.path } : { op: opName(request.type) };
}
