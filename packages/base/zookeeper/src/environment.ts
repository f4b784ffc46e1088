/** What the client uses of its environment. Each part can be replaced; defaults are in `edge/`. */

/** A timer. Cancelling a timer that has fired has no effect. */
export interface Timer {
  cancel(): void;
}

/**
 * The client's clock: wall time (`now`) and monotonic time in milliseconds, and timers. A background timer does not keep the process alive.
 */
export interface Clock {
  now(): number;
  monotonic(): number;
  setTimer(ms: number, fn: () => void, options?: { readonly background?: boolean }): Timer;
}

/** Randomness, passed in so that a simulation can repeat a run. */
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
  /** The address that `host` resolved to. */
  readonly address: string;
}

/** Callbacks of a link. They are never called within `open`, and never after `closed`. */
export interface LinkHandlers {
  opened(): void;
  /** The first `length` bytes of `bytes` arrived. The link owns the buffer and overwrites it after this call. */
  received(bytes: Buffer, length: number): void;
  /** All bytes written so far were accepted. Called only after a `write` that returned false. */
  drained(): void;
  /** The link ended, whether or not it ever opened. */
  closed(cause?: Error): void;
}

/** One connection to a server. */
export interface Link {
  /** Returns true when the caller may reuse `bytes` at once; false when it must not touch them, and `drained` follows. */
  write(bytes: Buffer): boolean;
  /** Ends the link without further callbacks, after the operating system has accepted what was written. */
  destroy(): void;
}

/** How the client reaches servers. The default uses TCP and TLS. */
export interface Connector {
  /** The addresses of a host. */
  resolve(host: string): Promise<readonly string[]>;
  open(endpoint: Endpoint, handlers: LinkHandlers): Link;
  /** Calls `fn` after the current work and its promise reactions, so that all requests written until then leave in one write. */
  defer(fn: () => void): void;
}
