/** What one server takes on. Every one can be set; a client beyond a limit is refused or cut, never buffered for ever. */
export interface ServerLimits {
  /**
   * Connections at once on each door: the Unix socket and TCP do not take each other's room, so that whoever crowds the one
   * does not lock the operator out of the other. One more is closed at once.
   */
  readonly maxConnections: number;
  /** Sessions of clients, connected or not; the last tenth is for the Unix socket. One more is refused. */
  readonly maxSessions: number;
  /**
   * Watches of one connection; a long path counts once more for every 256 characters. A request for one more is refused
   * with QuotaExceeded.
   */
  readonly maxWatchesPerConnection: number;
  /** Longest request in bytes, its length field not counted; ZooKeeper's `jute.maxbuffer`. A longer one cuts the connection. */
  readonly maxFrameBytes: number;
  /** Bytes of replies and events that a slow reader may leave untaken before it is cut. */
  readonly maxQueuedBytes: number;
  /** The same for all connections together: when it is passed, the one that is furthest behind is cut. */
  readonly maxQueuedBytesTotal: number;
  /** Requests of one connection that are being worked on; more stay in the socket. */
  readonly maxOutstanding: number;
  /** Time in which a connection must have asked for a session, ms. */
  readonly handshakeMs: number;
  /** What clients may ask for as session timeout, ms; others are clamped. */
  readonly minSessionTimeoutMs: number;
  readonly maxSessionTimeoutMs: number;
}

/** ZooKeeper's own defaults where it has them: 2 and 20 ticks of 2 s, and a `jute.maxbuffer` of 0xfffff. */
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
