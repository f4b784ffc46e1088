/** The address of a connection. */
export interface Address {
  readonly address: string;
  readonly family: 4 | 6;
}

/** An open TCP connection. It fails with errors of the socket, or with the signal's reason. */
export interface Wire {
  write(bytes: Uint8Array): void;
  /** The next bytes; undefined when the server has closed its side. */
  read(): Promise<Uint8Array | undefined>;
  /** A second call has no effect. */
  close(): void;
}

/** Opens a connection. It ends when `signal` aborts, also after it was opened. */
export type Connect = (to: Address, port: number, signal: AbortSignal) => Promise<Wire>;

/** All addresses of a host name, in the order in which to try them. */
export type Resolve = (host: string, signal: AbortSignal) => Promise<readonly Address[]>;

/** The client's half of a Diffie-Hellman exchange. `publicValue` and the argument of `agree` have the encoding of the method. */
export interface Agreement {
  readonly publicValue: Uint8Array;
  /** The shared secret, big-endian. Throws when the server's value is invalid. */
  agree(peer: Uint8Array): Uint8Array;
}

/** A group of a classic Diffie-Hellman exchange; both numbers are big-endian. */
export interface DhGroup {
  readonly prime: Uint8Array;
  readonly generator: Uint8Array;
}

/** A key exchange method of RFC 4253, 4419, 5656, 8268 or 8731, or a hybrid with ML-KEM. */
export interface ExchangeMethod {
  readonly name: string;
  readonly hash: "sha1" | "sha256" | "sha384" | "sha512";
  /** Encoding of public values: `mpint` for the classic groups, `string` for the curves and hybrids. */
  readonly encoding: "mpint" | "string";
  /** Encoding of the shared secret in the exchange hash: `string` for hybrids, whose secret is a hash. */
  readonly secretEncoding: "mpint" | "string";
  /** The server chooses the group (RFC 4419). `start` is then called with it, and throws when the group is out of bounds. */
  readonly asksForGroup: boolean;
  start(group?: DhGroup): Agreement;
}

/** What to scan. */
export interface ScanTarget {
  readonly host: string;
  readonly port: number;
  /** True: read the SSH host keys. False: only check that the port accepts connections. */
  readonly keys: boolean;
  /** Time limit of the scan in milliseconds. Waiting in the queue does not count. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** The address that answered, and its host keys. */
export interface ScanResult extends Address {
  /** "<type> <base64>", without duplicates, in the order ed25519, ECDSA by size of the curve, RSA. Empty when no keys were requested. */
  readonly hostKeys: readonly string[];
}

/** Scans hosts, many at once. */
export interface Scanner {
  /**
   * Rejects with a KeyscanError, or with the signal's reason as soon as it aborts. A target that refuses, is unreachable,
   * cannot be resolved or does not answer is tried again with back-off until `timeoutMs` has passed.
   */
  scan(target: ScanTarget): Promise<ScanResult>;
}
