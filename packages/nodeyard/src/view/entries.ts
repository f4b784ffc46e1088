import type { ComponentRecord, NodeRecord, RequestRecord } from "@nodeyard/model";

/** A node as the view knows it. Entries are immutable: every change makes a new one. */
export interface NodeEntry {
  readonly id: string;
  readonly record: NodeRecord;
  /** The znode's version, for fenced writes. */
  readonly version: number;
  /** Names of the children of the node's lock: a hint that it is locked, never proof that it is not. */
  readonly contenders: readonly string[];
}

export interface RequestEntry {
  readonly id: string;
  readonly record: RequestRecord;
  readonly version: number;
}

/** A registered component; `key` is `<kind>/<name of its znode>`: each kind numbers its own. */
export interface ComponentEntry {
  readonly key: string;
  readonly kind: string;
  readonly record: ComponentRecord;
  readonly version: number;
}

/** A record of ours under /nodeyard, still encoded: its owner decodes it. */
export interface OwnEntry {
  readonly path: string;
  readonly data: Uint8Array;
  readonly version: number;
}

/** What changed; `before` and `after` are absent where there was or is none. */
export type ViewEvent =
  | {
      readonly type: "node";
      readonly id: string;
      readonly before?: NodeEntry | undefined;
      readonly after?: NodeEntry | undefined;
    }
  | {
      readonly type: "request";
      readonly id: string;
      readonly before?: RequestEntry | undefined;
      readonly after?: RequestEntry | undefined;
    }
  | {
      readonly type: "component";
      readonly key: string;
      readonly before?: ComponentEntry | undefined;
      readonly after?: ComponentEntry | undefined;
    }
  | {
      readonly type: "own";
      readonly path: string;
      readonly before?: OwnEntry | undefined;
      readonly after?: OwnEntry | undefined;
    }
  /** The picture became whole, or stopped being so (disconnect). Nothing may be swept or reset while it is not. */
  | { readonly type: "complete"; readonly complete: boolean };
