import type { ZnodeRow } from "../engine/index.ts";

/** Sessions of roles inside the process end with it; those of wire clients outlive a restart of the server. */
export type SessionKind = "process" | "wire";

export interface SessionRow {
  readonly id: bigint;
  readonly kind: SessionKind;
  readonly timeoutMs: number;
  /** What a client must show to take the session up again. */
  readonly password: Uint8Array;
}

/** One transaction: the last state of everything that changed since the one before. */
export interface Batch {
  readonly zxid: bigint;
  readonly puts: readonly ZnodeRow[];
  readonly deletes: readonly string[];
  readonly sessionPuts: readonly SessionRow[];
  readonly sessionDeletes: readonly bigint[];
}

/** What the disk held when it was opened. */
export interface Snapshot {
  readonly zxid: bigint;
  /** How often the file was opened, this time included; makes session ids unique without a write for each. */
  readonly boot: number;
  readonly znodes: readonly ZnodeRow[];
  readonly sessions: readonly SessionRow[];
}

/** The disk beneath the embedded tree. Every method rejects with a `TreeError`. */
export interface Store {
  /** Resolves when the batch would survive power loss. After one rejection every later call rejects too. */
  commit(batch: Batch): Promise<void>;
  /** Writes a consistent copy of what is durable now to `path`, while commits go on. */
  backup(path: string): Promise<void>;
  close(): Promise<void>;
}
