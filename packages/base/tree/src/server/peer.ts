/** One connected client, independent of the transport. */
export interface Peer {
  /** Remote address, for messages. */
  readonly name: string;
  /** Connected through the Unix socket, so it is a process of the same user. */
  readonly local: boolean;
  /** Bytes written that the client has not taken yet. */
  readonly queuedBytes: number;
  write(bytes: Uint8Array): void;
  /** Stops and resumes reading from the client. */
  pause(): void;
  resume(): void;
  /** Ends the connection after everything written has been sent. */
  end(): void;
  /** Ends the connection at once. */
  destroy(): void;
}

export interface PeerHandlers {
  /** Bytes from the peer; the buffer stays valid. */
  arrived(bytes: Buffer): void;
  /** Everything written has been sent. */
  drained(): void;
  /** The connection has ended; no call follows. */
  closed(): void;
}

/** Called once per client. The returned handlers receive the client's events; undefined refuses the client. */
export type OnPeer = (peer: Peer) => PeerHandlers | undefined;

export interface Listener {
  /** `unix:/path` or `host:port`, as a client would name it. */
  readonly address: string;
  readonly port: number | undefined;
  close(): Promise<void>;
}

/** TLS with client certificates: a client without a certificate of `ca` is refused. All fields are PEM text. */
export interface ServerTls {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/** TCP address of the server. On addresses other than loopback each client needs a certificate. */
export interface TcpOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Required unless `host` is a loopback address. */
  readonly tls?: ServerTls;
}
