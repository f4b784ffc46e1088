import type { Stat } from "../../wire/messages.ts";

/** How much of a path the owner wants: its data, only that it exists, or nothing. */
export type Interest = "data" | "name" | "none";

/** What a tree cache reports of its subtree. */
export type TreeCacheChange =
  /** A znode is there. `data` and `stat` are present exactly for paths whose interest is "data". */
  | { readonly type: "put"; readonly path: string; readonly data?: Uint8Array; readonly stat?: Stat }
  | { readonly type: "remove"; readonly path: string }
  /** Continuity is lost (disconnect, new session): what follows, up to `synced`, is the difference to what was reported before. */
  | { readonly type: "gap" }
  /** All that was in the tree when the walk began has been reported. */
  | { readonly type: "synced" };

/** What the owner of a tree cache wants to know, and how it is told. */
export interface TreeCacheOptions {
  /** Must be pure. "name" and "none" paths are never fetched. A path whose interest is "none" hides nothing beneath it. */
  readonly interest: (path: string) => Interest;
  /**
   * Whether anything of interest can be beneath a path; absent: always. Must be pure. A walk does not list the children
   * of a path for which it says no, which spares one read per leaf whose data is not fetched.
   */
  readonly descend?: (path: string) => boolean;
  /**
   * The names of the only children of `path` beneath which anything of interest can be, where the owner knows them; absent or
   * undefined: any. Must be pure. A walk goes there without listing the children, which spares one read per record.
   */
  readonly only?: (path: string) => readonly string[] | undefined;
  /**
   * Called for each change, synchronously and in order; must not throw. Per path versions grow and the last state always arrives. Not
   * promised: states in between, or one moment for two paths.
   */
  readonly onChange: (change: TreeCacheChange) => void;
  /** Reads in flight at most during walks (default 256; 1,024 is sensible for a first walk). */
  readonly concurrency?: number;
}

/** What a persistent recursive watch reports: the znode itself, never its list of children. */
export interface SourceEvent {
  readonly type: "created" | "changed" | "deleted";
  readonly path: string;
}

/** One of the two is given; neither says that there is no such znode. */
type SourceReply<T> = (error: Error | undefined, value: T | undefined) => void;

/**
 * The connection that a cache follows. Replies and events come synchronously and in the order of the connection; a read that the
 * connection loses is answered with an error before the next one stands, and after the session's new state was reported.
 */
export interface Source {
  session(): { readonly state: string; readonly epoch: number };
  onSession(listener: (session: { readonly state: string; readonly epoch: number }) => void): () => void;
  get(path: string, reply: SourceReply<{ readonly data: Uint8Array; readonly stat: Stat }>): void;
  stat(path: string, reply: SourceReply<Stat>): void;
  children(path: string, reply: SourceReply<readonly string[]>): void;
  /**
   * Reports everything that happens at and below `root`, which need not exist. `onReady` is called when the watch stands, and again
   * whenever it stands anew after events may have been missed. The function ends it.
   */
  watch(root: string, onEvent: (event: SourceEvent) => void, onReady: () => void): () => Promise<void>;
}
