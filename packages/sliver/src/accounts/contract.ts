/** An account that only calls: the launcher's own, or a controller of a document. It has no shell and no machine. */
export interface ControlAccount {
  readonly name: string;
  /** `type base64` each. */
  readonly keys: readonly string[];
}

/** Lets control accounts in, over SSH. */
export interface ControlAccounts {
  /** Exactly these, from now on; the same list again changes nothing. */
  apply(accounts: readonly ControlAccount[]): Promise<void>;
}
