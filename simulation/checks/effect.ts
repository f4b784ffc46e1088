/** A create or delete of a machine at a cloud, or a check whether a node may be used again. */
export interface Effect {
  readonly kind: "create" | "delete" | "check";
  /**
   * `sent`: a process makes the call. `done`: the cloud carries it out, whether or not anybody still waits for it; the check found the
   * node good.
   */
  readonly moment: "sent" | "done";
  readonly provider: string;
  /** The node that the machine is tagged with; undefined: none. */
  readonly node: string | undefined;
  readonly machine: string | undefined;
  /** Of a create that is sent, for labels with several offerings: what it buys. */
  readonly type?: string | undefined;
  /** Whether this installation made the machine. */
  readonly ours: boolean;
  /** The process, and the session that it believes to have. */
  readonly client: string;
  readonly session: bigint;
  /** Whether the process may believe that its session lives. */
  readonly trusted: boolean;
}
