/** One connected client, without the means by which it is connected. */
export interface Peer {
  /** Where it comes from, for messages. */
  readonly name: string;
  /** It came through the Unix socket, so it is a process of the same user. */
  readonly local: boolean;
  /** Bytes written that the client has not taken yet. */
  readonly queuedBytes: number;
  write(bytes: Uint8Array): void;
  /** Stops and starts the intake of what the client sends. */
  pause(): void;
  resume(): void;
  /** Ends after what was written has gone out. */
  end(): void;
  /** Ends at once. */
  destroy(): void;
}

export interface PeerHandlers {
  /** Bytes of the peer; they stay valid. */
  arrived(bytes: Buffer): void;
  /** Everything written has gone out. */
  drained(): void;
  /** It is gone, for whatever reason; no call follows. */
  closed(): void;
}

/** Called once per client; what it returns hears of that client. Undefined: the client is not let in. */
export type OnPeer = (peer: Peer) => PeerHandlers | undefined;

export interface Listener {
  /** `unix:/path` or `host:port`, as a client would name it. */
  readonly address: string;
  readonly port: number | undefined;
  close(): Promise<void>;
}

/** TLS with client certificates: who has no certificate of `ca` does not get in. All are PEM text. */
export interface ServerTls {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/** Where the server listens by TCP. Beyond loopback it asks each client for a certificate. */
export interface TcpOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** May be left out only where `host` is loopback. */
  readonly tls?: ServerTls;
}
