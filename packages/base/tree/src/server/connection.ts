import { ProtocolError, wire } from "@nodeyard/zookeeper";
import type { SessionRow } from "../embedded/store.ts";
import { type AccessList, type Identity, Permission, permits } from "../engine/index.ts";
import { WIRE_EVENTS } from "./codes.ts";
import { fourLetterAnswer } from "./four-letter.ts";
import type { Client, Hub } from "./hub.ts";
import type { Peer, PeerHandlers } from "./peer.ts";
import { answer } from "./requests.ts";
import type { WatchEventType } from "./watches.ts";

const { ErrorCode, JuteReader, KeeperState, OpCode, Xid } = wire;

/** A paused connection is read again when its outstanding requests fall to this share of the limit. */
const RESUME_SHARE = 0.5;
/** Most identities of one connection. An `auth` entry of an access list expands to all of them, so this bounds the memory per request. */
const MAX_IDENTITIES = 16;
/** Types of requests that the decoder can read. Others are answered with UNIMPLEMENTED instead of ending the connection. */
const KNOWN_TYPES: ReadonlySet<number> = new Set(Object.values(OpCode));

type Body = (writer: wire.JuteWriter) => void;

/**
 * One client: handshake, incoming requests, outgoing replies and events.
 *
 * Everything sent passes the core's `release` in the order in which it was computed, pings included. A reply's zxid tells
 * the client which changes it has seen, so the reply must not overtake an event.
 */
class Connection implements Client, PeerHandlers {
  readonly peer: Peer;
  queuedBytes = 0;
  received = 0;
  sent = 0;
  readonly since: number;
  /** True on the Unix socket: its clients are processes of the user who owns the tree's file. */
  readonly trusted: boolean;
  readonly #identities: Identity[] = [];
  readonly #hub: Hub;
  readonly #splitter: wire.FrameSplitter;
  readonly #reader = new JuteReader();
  readonly #handshake: { cancel(): void };
  #session: SessionRow | undefined;
  #outstanding = 0;
  #paused = false;
  /** Frames that arrived together with the one that reached the limit; at most one read of the socket. */
  #backlog: Buffer[] = [];
  /** Nothing has arrived yet: the first bytes may be a four-letter word instead of a frame. */
  #fresh = true;
  /** The connection has ended. Everything that arrives later is ignored. */
  #over = false;

  constructor(peer: Peer, hub: Hub) {
    this.peer = peer;
    this.#hub = hub;
    const { limits, clock } = hub;
    this.since = clock.now();
    this.trusted = peer.local;
    this.#splitter = new wire.FrameSplitter(limits.maxFrameBytes, (bytes, start, end) => {
      if (this.#paused) this.#backlog.push(Buffer.from(bytes.subarray(start, end)));
      else this.#onFrame(bytes, start, end);
    });
    this.#handshake = clock.setTimer(limits.handshakeMs, () => this.cut("handshake"), { background: true });
  }

  get session(): SessionRow | undefined {
    return this.#session;
  }

  /** Identities proved on this connection. As in ZooKeeper a new connection starts without any. */
  get identities(): readonly Identity[] {
    return this.#identities;
  }

  identify(identity: Identity): boolean {
    if (this.#identities.some(({ scheme, id }) => scheme === identity.scheme && id === identity.id))
      return true;
    return this.#identities.length < MAX_IDENTITIES && this.#identities.push(identity) > 0;
  }

  get outstanding(): number {
    return this.#outstanding;
  }

  arrived(bytes: Buffer): void {
    if (this.#over) return;
    if (this.#fresh) {
      this.#fresh = false;
      const text = fourLetterAnswer(bytes.toString("latin1", 0, 4), this.#hub, this);
      if (text !== undefined) {
        this.peer.write(Buffer.from(text));
        this.#finish();
        return;
      }
    }
    this.#trusting(() => this.#splitter.push(bytes));
  }

  /** The client has read everything, so a paused connection may be read again. */
  drained(): void {
    this.#hub.queued(-this.queuedBytes);
    this.queuedBytes = 0;
    this.#mayResume();
  }

  closed(): void {
    this.#end();
    this.#hub.left(this);
  }

  cut(reason: string): void {
    if (this.#over) return;
    this.#hub.counted(reason);
    this.#end();
    this.peer.destroy();
  }

  lookAtQueue(): number {
    this.queuedBytes = this.#over ? 0 : this.peer.queuedBytes;
    return this.queuedBytes;
  }

  /** Sends an event. A client that may not read a path gets no events for it (CVE-2024-23944). */
  notify(type: WatchEventType, path: string, acl: AccessList): void {
    if (!permits(acl, Permission.read, this)) return;
    const event = { type: WIRE_EVENTS[type], state: KeeperState.syncConnected, path };
    // Events carry the zxid -1, as those of ZooKeeper before 3.9.
    this.#send(Xid.event, -1n, ErrorCode.ok, (writer) => wire.watcherEvent.write(writer, event));
  }

  reply(xid: number, err: number, body?: Body): void {
    this.#send(xid, this.#hub.core.zxid, err, body);
  }

  finish(): void {
    this.#backlog = [];
    this.#splitter.stop();
    this.#hub.core.release(() => this.#finish());
  }

  #finish(): void {
    this.#end();
    this.peer.end();
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#backlog = [];
    this.#handshake.cancel();
    this.#splitter.stop();
    this.#hub.watches.removeAll(this);
  }

  /** Takes one frame: the connect request first, then requests. Every frame restarts the timeout of the session, pings too. */
  #onFrame(bytes: Buffer, start: number, end: number): void {
    this.#reader.reset(bytes, start, end);
    if (this.#session === undefined) {
      this.#connect(wire.connectRequest.read(this.#reader));
      return;
    }
    this.#hub.core.touch(this.#session.id);
    this.#hub.received++;
    this.received++;
    const { xid, type } = wire.requestHeader.read(this.#reader);
    if (!KNOWN_TYPES.has(type)) {
      this.reply(xid, ErrorCode.unimplemented);
      return;
    }
    answer(this.#hub, this, this.#session, xid, wire.readRequest(this.#reader, type));
  }

  /** Opens a session, or continues one whose password the client knows. */
  #connect(request: wire.ConnectRequest): void {
    this.#handshake.cancel();
    const { core } = this.#hub;
    // The client has seen changes that this tree does not have, so it must not see this older state.
    if (request.lastZxidSeen > core.zxid) {
      this.cut("ahead");
      return;
    }
    const fresh = request.sessionId === 0n;
    const session = fresh
      ? this.#hub.openSession(request.timeOut, this.peer.local)
      : this.#hub.takeUp(request.sessionId, request.passwd);
    if (fresh && session === undefined) {
      // No answer: clients would react to "expired" by asking for a new session at once.
      this.cut("sessions");
      return;
    }
    this.#hub.core.release((error) => {
      if (error === undefined && !this.#over)
        this.#write((writer) => wire.connectResponse.write(writer, connected(session)));
    });
    if (session === undefined) {
      this.finish();
      return;
    }
    this.#session = session;
    this.#hub.attach(this, session.id);
  }

  /** Sends a reply or event when all changes that it shows are durable. A client that sends faster than this is paused. */
  #send(xid: number, zxid: bigint, err: number, body: Body | undefined): void {
    if (this.#over) return;
    this.#outstanding++;
    if (this.#outstanding > this.#hub.limits.maxOutstanding) this.#pause();
    this.#hub.core.release((error) => {
      this.#outstanding--;
      if (error !== undefined) {
        // The store failed. A reply could claim something that is not durable, so send nothing.
        this.cut("store");
        return;
      }
      this.#write((writer) => {
        wire.replyHeader.write(writer, { xid, zxid, err });
        if (err === ErrorCode.ok) body?.(writer);
      });
      this.#mayResume();
    });
  }

  #write(body: Body): void {
    const { writer, limits } = this.#hub;
    writer.reset();
    const mark = writer.beginFrame();
    try {
      body(writer);
      writer.endFrame(mark);
    } catch {
      // For instance a reply longer than a buffer can be. This runs in a callback of `release`, where no caller could catch it.
      this.cut("error");
      return;
    }
    this.#hub.sent++;
    this.sent++;
    this.peer.write(Buffer.from(writer.written()));
    const before = this.queuedBytes;
    const queued = this.lookAtQueue();
    this.#hub.queued(queued - before);
    // A client that does not read is paused first. It is cut when the replies to what it had sent before fill the memory all the same.
    if (queued > limits.maxQueuedBytes) this.cut("slow");
    else if (queued > limits.maxQueuedBytes / 4) this.#pause();
  }

  #pause(): void {
    if (this.#paused || this.#over) return;
    this.#paused = true;
    this.peer.pause();
  }

  #mayResume(): void {
    if (!this.#paused || this.#over) return;
    const { limits } = this.#hub;
    if (this.#outstanding > limits.maxOutstanding * RESUME_SHARE) return;
    if (this.peer.queuedBytes > limits.maxQueuedBytes / 4) return;
    this.#paused = false;
    // In a microtask, because a reply that leaves at once resumes again, and the recursion would grow with each frame of the backlog.
    queueMicrotask(() => this.#workOff());
  }

  /** Handles the frames that arrived before the pause took effect, then reads the socket again. */
  #workOff(): void {
    this.#trusting(() => {
      while (!this.#paused && !this.#over && this.#backlog.length > 0) {
        const frame = this.#backlog.shift()!;
        this.#onFrame(frame, 0, frame.length);
      }
    });
    if (!this.#paused && !this.#over) this.peer.resume();
  }

  /** Ends the connection on a malformed or too long frame, because the frames behind it cannot be trusted either. */
  #trusting(act: () => void): void {
    try {
      act();
    } catch (error) {
      // Any other error is a bug of this server. It costs this client its connection, and no other client.
      this.cut(error instanceof ProtocolError ? "frame" : "error");
    }
  }
}

/** Accepts a client, unless the hub refuses it. */
export function admit(hub: Hub, peer: Peer): PeerHandlers | undefined {
  if (!hub.admits(peer)) return undefined;
  const connection = new Connection(peer, hub);
  hub.connections.add(connection);
  return connection;
}

/** A timeout of 0 tells the client that its session has expired. */
function connected(session: SessionRow | undefined): wire.ConnectResponse {
  return {
    protocolVersion: 0,
    timeOut: session?.timeoutMs ?? 0,
    sessionId: session?.id ?? 0n,
    passwd: session?.password ?? new Uint8Array(16),
    readOnly: false,
  };
}
