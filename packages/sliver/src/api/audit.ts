/** One decision about one call; a line of the audit log. */
export interface AuditEntry {
  /** ISO 8601. */
  readonly at: string;
  readonly account: string;
  readonly role: string;
  readonly dialect: string;
  readonly method: string;
  readonly target?: string;
  readonly verdict: "allowed" | "denied" | "fault";
  /** Of the fault. */
  readonly code?: number;
  readonly message?: string;
}

export type Audit = (entry: AuditEntry) => void;
