/** What the launcher in shadow does first with a request. Keys of these are part of `--json`. */
export interface ShadowAnswer {
  /** `waits`: it still did when another launcher took it. `undecided`: nothing was decided by then. */
  readonly result: "served" | "refused" | "waits" | "undecided";
  /** `<provider>/<pool>`; null: none. */
  readonly pool: string | null;
  readonly reused: number;
  readonly launched: number;
  /** Until its nodes are ready, seconds: its launches are taken to last as recorded ones did. Null: not served, or its begin is unknown. */
  readonly wait: number | null;
  /** Why it is declined, in words, or the code of what it waits for. */
  readonly reason: string | null;
}

/** What became of it in the tree. */
export interface TreeAnswer {
  readonly result: "served" | "refused" | "withdrawn";
  readonly pool: string | null;
  /** Nodes that were there before it was made, and others. */
  readonly reused: number;
  readonly launched: number;
  /** By the times in its record, seconds. */
  readonly wait: number | null;
  /** Launcher-pool ids. */
  readonly declined_by: readonly string[];
  readonly nodes: readonly string[];
  /** States in their order, and since when, seconds since the epoch; those in between may have been missed. */
  readonly states: readonly { readonly state: string; readonly at: number | null }[];
}
