/** What the client takes from the machine, each of it replaceable. Defaults live in `edge/`. */

/** A timer that was set; cancelling one that has fired does nothing. */
export interface Timer {
  cancel(): void;
}

/** Time as the client sees it: wall time, time that never goes back, and timers. */
export interface Clock {
  now(): number;
  monotonic(): number;
  setTimer(ms: number, fn: () => void, options?: { readonly background?: boolean }): Timer;
}

/** Chance, passed in so that a simulation can repeat it. */
export interface Random {
  /** Uniform in [0, 1). */
  float(): number;
  uuid(): string;
}

/** One address to connect to. */
export interface Endpoint {
  /** As written in the connection string. */
  readonly host: string;
  readonly port: number;
  /** What `host` resolved to. */
  readonly address: string;
}

/** What a link tells its owner, always later than the call that opened it, and never after `closed`. */
export interface LinkHandlers {
  opened(): void;
  /** The first `length` of `bytes` arrived. They belong to the link and are overwritten as soon as this returns. */
  received(bytes: Buffer, length: number): void;
  /** What was written before has left; only after a `write` that returned false. */
  drained(): void;
  /** The link is over, for whatever reason, opened or not. */
  closed(cause?: Error): void;
}

/** One connection to a server. */
export interface Link {
  /** Returns true when `bytes` may be reused at once; false when they must be left alone and `drained` will come. */
  write(bytes: Buffer): boolean;
  /** Ends the link without further calls to its handlers, after what was written has been handed to the system. */
  destroy(): void;
}

/** How the client reaches servers; the default speaks TCP and TLS. */
export interface Connector {
  /** The addresses of a host. */
  resolve(host: string): Promise<readonly string[]>;
  open(endpoint: Endpoint, handlers: LinkHandlers): Link;
  /** Calls `fn` once the work at hand, promise reactions included, is done: what was written till then leaves together. */
  defer(fn: () => void): void;
}
