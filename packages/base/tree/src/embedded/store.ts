import type { ZnodeRow } from "../engine/index.ts";

/** Sessions of roles in the process end with the process. Sessions of wire clients survive a restart of the server. */
export type SessionKind = "process" | "wire";

export interface SessionRow {
  readonly id: bigint;
  readonly kind: SessionKind;
  readonly timeoutMs: number;
  /** The secret with which a client continues its session on another connection. */
  readonly password: Uint8Array;
}

/** One transaction: the final state of every path and session that changed since the previous batch. */
export interface Batch {
  readonly zxid: bigint;
  readonly puts: readonly ZnodeRow[];
  readonly deletes: readonly string[];
  readonly sessionPuts: readonly SessionRow[];
  readonly sessionDeletes: readonly bigint[];
}

/** The contents of the file at the time of opening. */
export interface Snapshot {
  readonly zxid: bigint;
  /** How often the file was opened, this time included. It makes session ids unique without a write per id. */
  readonly boot: number;
  readonly znodes: readonly ZnodeRow[];
  readonly sessions: readonly SessionRow[];
}

/** The storage of the embedded tree. Every method rejects with a `TreeError`. */
export interface Store {
  /** Resolves when the batch would survive power loss. After one rejection every later call rejects too. */
  commit(batch: Batch): Promise<void>;
  /** Writes a consistent copy of the durable state to `path` while commits continue. */
  backup(path: string): Promise<void>;
  close(): Promise<void>;
}
