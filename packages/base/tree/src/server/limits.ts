/** Limits of one server. Beyond a limit a client is refused or disconnected; nothing is buffered without bound (rule 8). */
export interface ServerLimits {
  /**
   * Most connections, counted separately for the Unix socket and for TCP, so that many TCP clients cannot lock the operator out.
   * Further connections are closed at once.
   */
  readonly maxConnections: number;
  /** Most sessions of clients, connected or not. The last tenth is reserved for the Unix socket. Further sessions are refused. */
  readonly maxSessions: number;
  /**
   * Most watches of one connection. A path counts once more for every 256 characters. A request for a further watch is refused
   * with QuotaExceeded.
   */
  readonly maxWatchesPerConnection: number;
  /** Longest request in bytes without its length field (ZooKeeper's `jute.maxbuffer`). A longer one closes the connection. */
  readonly maxFrameBytes: number;
  /** Most bytes of replies and events that a client may leave unread before it is disconnected. */
  readonly maxQueuedBytes: number;
  /** The same for all connections together. Above it the connection with the longest queue is disconnected. */
  readonly maxQueuedBytesTotal: number;
  /** Most requests of one connection in progress. Further requests remain in the socket. */
  readonly maxOutstanding: number;
  /** Time within which a connection must request a session, in ms. */
  readonly handshakeMs: number;
  /** Range of session timeouts in ms; requested timeouts are clamped to it. */
  readonly minSessionTimeoutMs: number;
  readonly maxSessionTimeoutMs: number;
}

/** ZooKeeper's defaults, where it has them: 2 and 20 ticks of 2 s, and a `jute.maxbuffer` of 0xfffff. */
export const DEFAULT_LIMITS: ServerLimits = {
  maxConnections: 1_000,
  maxSessions: 10_000,
  maxWatchesPerConnection: 200_000,
  maxFrameBytes: 0xfffff,
  maxQueuedBytes: 64 << 20,
  maxQueuedBytesTotal: 256 << 20,
  maxOutstanding: 1_000,
  handshakeMs: 10_000,
  minSessionTimeoutMs: 4_000,
  maxSessionTimeoutMs: 40_000,
};
