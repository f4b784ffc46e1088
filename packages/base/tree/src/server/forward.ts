import type { Clock, Timer } from "@nodeyard/runtime";
import {
  type Connector,
  type HostAndPort,
  type Link,
  parseConnectionString,
  SocketConnector,
  type TlsOptions,
  wire,
} from "@nodeyard/zookeeper";
import { zooKeeperPassword } from "../moving/passwords.ts";
import { listenTcp, listenUnix } from "./edge/listen.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import type { Listener, Peer, PeerHandlers, TcpOptions } from "./peer.ts";

/** Milliseconds between two tries to reach a server of the ZooKeeper. */
const RETRY_MS = 100;
/** Tries for one client, at most: then it is to try again itself, since one that waits and has gone is not noticed. */
const TRIES = 200;
/** Most bytes that clients together have not taken yet: a ZooKeeper cannot be told to wait. */
const MAX_QUEUED = 256 * 1024 * 1024;
/** Longer than any handshake. What begins with a larger number is a four-letter word. */
const MAX_HANDSHAKE = 4096;

/** Where clients come, and where they are brought. */
export interface ForwarderOptions {
  /** The servers of the ZooKeeper, which has the tree now: `host:port,host:port`. */
  readonly servers: string;
  readonly tls?: TlsOptions;
  /** The secret that each session got here, by its id. ZooKeeper wants another one. */
  readonly passwords: ReadonlyMap<bigint, Uint8Array>;
  readonly clock: Clock;
  /** Clients are let in at once, and wait until this resolves. */
  readonly ready: Promise<void>;
  /** Where the tree was served: the path of the Unix socket, and the address by TCP. */
  readonly socket: string;
  readonly tcp?: TcpOptions;
}

/** The former addresses of a tree, served. */
export interface Forwarder {
  readonly addresses: readonly string[];
  /** Connections of clients that still come here. */
  readonly clients: number;
  close(): Promise<void>;
}

/**
 * Serves the former addresses of a tree that is at a ZooKeeper now: clients continue their sessions there without a change. Each connection has one
 * of its own to a server, which is waited for. Rejects with ListenRefused.
 */
export async function startForwarder(options: ForwarderOptions): Promise<Forwarder> {
  const passages = new Set<Passage>();
  const target = {
    hosts: parseConnectionString(options.servers).hosts,
    connector: new SocketConnector(options.tls),
    queuedBytes: 0,
  };
  const admit = (peer: Peer): PeerHandlers => {
    const passage = new Passage(peer, options, target, passages.size);
    passages.add(passage);
    passage.onEnd = () => passages.delete(passage);
    return passage;
  };
  const listeners: Listener[] = [];
  const close = async (): Promise<void> => {
    const closed = listeners.map((listener) => listener.close());
    for (const passage of [...passages]) passage.closed();
    await Promise.all(closed);
  };
  try {
    listeners.push(await listenUnix(options.socket, DEFAULT_LIMITS.maxConnections, admit));
    if (options.tcp !== undefined)
      listeners.push(await listenTcp(options.tcp, DEFAULT_LIMITS.maxConnections, admit));
  } catch (error) {
    await close();
    throw error;
  }
  return {
    addresses: listeners.map(({ address }) => address),
    get clients() {
      return passages.size;
    },
    close,
  };
}

/** The servers and the way to them. */
interface Target {
  readonly hosts: readonly HostAndPort[];
  readonly connector: Connector;
  /** Bytes that all clients have not taken yet. */
  queuedBytes: number;
}

/** One client and its connection to a server. */
class Passage implements PeerHandlers {
  readonly #peer: Peer;
  readonly #options: ForwarderOptions;
  readonly #target: Target;
  onEnd = (): void => {};
  #link: Link | undefined;
  #isOpen = false;
  #isOver = false;
  #retry: Timer | undefined;
  #tries = 0;
  /** What the client sent before there was a server. */
  #early: Buffer[] = [];
  /** The bytes from either side that are not a whole handshake yet; undefined: it is over. */
  #request: Buffer | undefined = Buffer.alloc(0);
  #response: Buffer | undefined;
  /** The secret by which the client knows its session. */
  #known: Uint8Array | undefined;
  /** Counts through the servers. */
  #server: number;
  /** Bytes that the client has not taken yet. */
  #queued = 0;

  constructor(peer: Peer, options: ForwarderOptions, target: Target, server: number) {
    this.#peer = peer;
    this.#options = options;
    this.#target = target;
    this.#server = server;
  }

  arrived(bytes: Buffer): void {
    if (this.#request === undefined) return this.#send(bytes);
    this.#trusting(() => {
      this.#request = Buffer.concat([this.#request!, bytes]);
      const whole = this.#asked(this.#request);
      if (whole === undefined) return;
      this.#request = undefined;
      this.#send(whole);
      // Not before: a ZooKeeper counts connections by address, and all of these have one.
      void this.#options.ready.then(() => this.#dial());
    });
  }

  drained(): void {
    this.#count(0);
  }

  closed(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#count(0);
    this.#retry?.cancel();
    this.#link?.destroy();
    this.onEnd();
  }

  /** Ends the connection on a handshake that is none. */
  #trusting(act: () => void): void {
    try {
      act();
    } catch {
      this.closed();
      this.#peer.destroy();
    }
  }

  #count(queued: number): void {
    this.#target.queuedBytes += queued - this.#queued;
    this.#queued = queued;
  }

  async #dial(): Promise<void> {
    if (this.#isOver) return;
    const { connector, hosts } = this.#target;
    const { host, port } = hosts[this.#server++ % hosts.length]!;
    const [address] = await connector.resolve(host).catch(() => []);
    if (this.#isOver) return;
    if (address === undefined) return this.#later();
    this.#link = connector.open(
      { host, port, address },
      {
        opened: () => {
          this.#isOpen = true;
          this.#peer.resume();
          for (const bytes of this.#early.splice(0)) this.#send(bytes);
        },
        received: (bytes, length) =>
          this.#trusting(() => this.#received(Buffer.from(bytes.subarray(0, length)))),
        drained: () => this.#peer.resume(),
        closed: () => (this.#isOpen ? this.#end() : this.#later()),
      },
    );
  }

  #later(): void {
    if (++this.#tries > TRIES) return this.#end();
    this.#retry = this.#options.clock.setTimer(RETRY_MS, () => void this.#dial());
  }

  #end(): void {
    this.closed();
    this.#peer.end();
  }

  #send(bytes: Buffer): void {
    if (!this.#isOpen) this.#early.push(bytes);
    if (!this.#isOpen || this.#link?.write(bytes) === false) this.#peer.pause();
  }

  #received(bytes: Buffer): void {
    let passed: Buffer | undefined = bytes;
    if (this.#response !== undefined) {
      this.#response = Buffer.concat([this.#response, bytes]);
      passed = this.#answered(this.#response);
      if (passed !== undefined) this.#response = undefined;
    }
    if (passed !== undefined) this.#peer.write(passed);
    this.#count(this.#peer.queuedBytes);
    if (this.#target.queuedBytes > MAX_QUEUED) {
      this.closed();
      this.#peer.destroy();
    }
  }

  /** The client's first bytes with the secret that the ZooKeeper wants; undefined: they are not complete. */
  #asked(bytes: Buffer): Buffer | undefined {
    const size = handshakeSize(bytes);
    if (size === undefined) return undefined;
    if (size === 0) return bytes;
    const request = wire.connectRequest.read(new wire.JuteReader(bytes.subarray(4, 4 + size)));
    const known = this.#options.passwords.get(request.sessionId);
    if (known === undefined || !Buffer.from(known).equals(request.passwd)) return bytes;
    this.#known = known;
    this.#response = Buffer.alloc(0);
    return replaced(bytes, size, request.passwd, zooKeeperPassword(request.sessionId));
  }

  /** The answer with the secret that the client knows, by which it can go on here and, should the tree come back, there. */
  #answered(bytes: Buffer): Buffer | undefined {
    const size = handshakeSize(bytes);
    if (size === undefined) return undefined;
    if (size === 0) return bytes;
    const { passwd, timeOut } = wire.connectResponse.read(new wire.JuteReader(bytes.subarray(4, 4 + size)));
    return timeOut > 0 ? replaced(bytes, size, passwd, this.#known!) : bytes;
  }
}

/** Bytes of the handshake behind its length; undefined: more have to come; 0: it is none. */
function handshakeSize(bytes: Buffer): number | undefined {
  if (bytes.length < 4) return undefined;
  const size = bytes.readInt32BE(0);
  if (size <= 0 || size > MAX_HANDSHAKE) return 0;
  return bytes.length < 4 + size ? undefined : size;
}

/** The first frame with other 16 bytes in the place of a secret of as many. */
function replaced(bytes: Buffer, size: number, former: Uint8Array, secret: Uint8Array): Buffer {
  const at = bytes.subarray(0, 4 + size).lastIndexOf(former);
  const copy = Buffer.from(bytes);
  if (at >= 0 && former.length === secret.length) copy.set(secret, at);
  return copy;
}
