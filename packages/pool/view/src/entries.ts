import type {
  ComponentRecord,
  ImageUploadRecord,
  NodeFields,
  NodeRecord,
  RequestRecord,
  Standing,
} from "@nodeyard/model";

/** A node as the view knows it. Entries are immutable: every change makes a new one. */
export interface NodeEntry {
  readonly id: string;
  readonly record: NodeRecord;
  /** The znode's version, for fenced writes. */
  readonly version: number;
  /** Names of the children of the node's lock: a hint that it is locked, never proof that it is not. */
  readonly contenders: readonly string[];
}

/** A request as the view has it; `version` is what a write of it names. */
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

/** An upload of a diskimage, with the names that its path has. */
export interface ImageUploadEntry {
  readonly image: string;
  readonly build: string;
  readonly provider: string;
  readonly record: ImageUploadRecord;
}

/** What the tree says of one diskimage. */
export interface ImageFacts {
  /** The upload that a launch boots, by provider. */
  readonly ready: ReadonlyMap<string, ImageUploadEntry>;
  /** Providers to which an upload is under way. */
  readonly uploading: ReadonlySet<string>;
  /** How many builds there are in each state. */
  readonly builds: { readonly building: number; readonly ready: number; readonly failed: number };
  /** Builds are paused by hand. */
  readonly paused: boolean;
}

/** A record of ours under /nodeyard, still encoded: its owner decodes it. */
export interface OwnEntry {
  readonly path: string;
  readonly data: Uint8Array;
  readonly version: number;
  /** Tree time, milliseconds. */
  readonly created: number;
}

/** A record that exists and cannot be read. */
export interface UnreadableEntry {
  readonly path: string;
  readonly kind: "node" | "request" | "component" | "image-build" | "image-upload";
  /** The name of its znode. */
  readonly id: string;
  readonly version: number;
  /** Why it cannot be read: a RecordErrorCode, and the message with it. */
  readonly code: string;
  readonly why: string;
  /** For a node: the fields that can be read, and those of its last readable version. Empty for other records. */
  readonly known: Partial<NodeFields>;
}

/** What the tree says of a backing node, as far as it takes slots. */
export interface BackingFacts {
  readonly id: string;
  /** The metastatic provider that gives out its slots. */
  readonly provider: string;
  /** Of the slots. */
  readonly label: string;
  readonly slots: number;
  /** Seconds since the epoch, from which its age counts. */
  readonly launched: number;
  /** Of its record, which a claim demands. */
  readonly version: number;
  /** It carries slots and is not on its way out. */
  readonly inUse: boolean;
  /** Its lock and its slots folder stand. */
  readonly open: boolean;
  /** Why it gets no new slots, although nodes in its slots are still used. */
  readonly ended: string | undefined;
  /** Slots that a claim or a record says are taken. */
  readonly taken: ReadonlySet<number>;
}

/** `before` and `after` are absent where there was or is none. */
type Changed<Type extends string, Key extends string, Entry> = Readonly<
  Record<"type", Type> & Record<Key, string>
> & {
  readonly before?: Entry | undefined;
  readonly after?: Entry | undefined;
};

/** What changed. */
export type ViewEvent =
  | Changed<"node", "id", NodeEntry>
  | Changed<"request", "id", RequestEntry>
  | Changed<"component", "key", ComponentEntry>
  | Changed<"own", "path", OwnEntry>
  /** A record became unreadable (this event comes before the removal of its entry), or readable again (after the entry is back). */
  | Changed<"unreadable", "path", UnreadableEntry>
  /** Comes after the events that it follows from. Without `after`: it is no backing node any more. */
  | { readonly type: "backing"; readonly id: string; readonly after?: BackingFacts | undefined }
  /** As `backing`. Without `after`: there is no such thing any more. */
  | Changed<"standing", "id", Standing>
  /** Without `after`: nothing is left of the image. */
  | { readonly type: "image"; readonly image: string; readonly after?: ImageFacts | undefined }
  /** The picture became whole, or stopped being so (disconnect). Nothing may be swept or reset while it is not. */
  | { readonly type: "complete"; readonly complete: boolean };
