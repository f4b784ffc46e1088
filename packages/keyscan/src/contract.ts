/** Where a connection goes. */
export interface Address {
  readonly address: string;
  readonly family: 4 | 6;
}

/** A TCP connection that is open. All failures are errors of the socket, or the signal's reason. */
export interface Wire {
  write(bytes: Uint8Array): void;
  /** The next bytes; undefined when the peer has ended. */
  read(): Promise<Uint8Array | undefined>;
  /** Twice: nothing. */
  close(): void;
}

/** Opens a connection. When `signal` aborts, also later, the connection ends at once. */
export type Connect = (to: Address, port: number, signal: AbortSignal) => Promise<Wire>;

/** All addresses of a host name, in the order in which they should be tried. */
export type Resolve = (host: string, signal: AbortSignal) => Promise<readonly Address[]>;

/** Our half of one Diffie-Hellman exchange; `publicValue` and `agree` speak the method's own encoding. */
export interface Agreement {
  readonly publicValue: Uint8Array;
  /** The shared secret, big-endian. Throws when the peer's value is not valid. */
  agree(peer: Uint8Array): Uint8Array;
}

/** A key exchange method of RFC 4253, 5656, 8268 or 8731. */
export interface ExchangeMethod {
  readonly name: string;
  readonly hash: "sha1" | "sha256" | "sha384" | "sha512";
  /** How public values travel: `mpint` for the classic groups, `string` for the curves. */
  readonly encoding: "mpint" | "string";
  start(): Agreement;
}

/** What to scan. */
export interface ScanTarget {
  readonly host: string;
  readonly port: number;
  /** True: the SSH host keys are wanted. False: an open port is enough. */
  readonly keys: boolean;
  /** For the whole scan, milliseconds, counted from the moment it leaves the queue. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** What was found: the address that answered, and its keys. */
export interface ScanResult extends Address {
  /** "<type> <base64>", each key once: ed25519, the ECDSA curves by size, RSA. Empty when no keys were wanted. */
  readonly hostKeys: readonly string[];
}

/** Scans hosts, many at once. */
export interface Scanner {
  /**
   * Rejects with a KeyscanError, or with the signal's reason as soon as it aborts.
   * Refused, unreachable, unresolved or silent targets are tried again, with back-off, until `timeoutMs` has passed.
   */
  scan(target: ScanTarget): Promise<ScanResult>;
}
