import type { Stat } from "../../wire/messages.ts";

/** How much of a path the owner wants: its data, only its existence, or nothing. */
export type Interest = "data" | "name" | "none";

/** What a tree cache reports about its subtree. */
export type TreeCacheChange =
  /** A znode exists. `data` and `stat` are present exactly for paths whose interest is "data". */
  | { readonly type: "put"; readonly path: string; readonly data?: Uint8Array; readonly stat?: Stat }
  | { readonly type: "remove"; readonly path: string }
  /** Events may have been missed (disconnect, new session). The reports up to `synced` are the difference to earlier reports. */
  | { readonly type: "gap" }
  /** Every znode that existed when the walk began has been reported. */
  | { readonly type: "synced" };

/** What the owner of a tree cache wants to know, and how the cache reports it. */
export interface TreeCacheOptions {
  /** Must be pure. The data of "name" and "none" paths is never fetched. A path of interest "none" does not exclude the paths below it. */
  readonly interest: (path: string) => Interest;
  /**
   * Whether anything of interest can exist below a path; default: always. Must be pure. Where it returns false a walk does not list the
   * children, which saves one read for each leaf whose data is not fetched.
   */
  readonly descend?: (path: string) => boolean;
  /**
   * The only names of children of `path` below which anything of interest can exist, if the owner knows them; undefined: any name. Must be
   * pure. A walk visits these names without listing the children, which saves one read per record.
   */
  readonly only?: (path: string) => readonly string[] | undefined;
  /**
   * Called for each change, synchronously and in order. Must not throw. For one path versions grow, and the last state always arrives. Not
   * guaranteed: intermediate states, and that two paths are reported as of the same moment.
   */
  readonly onChange: (change: TreeCacheChange) => void;
  /** Most reads in flight during walks (default 256; 1,024 is sensible for the first walk of a large tree). */
  readonly concurrency?: number;
}

/** An event of a persistent recursive watch. Such watches report the znode itself, never its list of children. */
export interface SourceEvent {
  readonly type: "created" | "changed" | "deleted";
  readonly path: string;
}

/** At most one of the two is given. Neither is given when the znode does not exist. */
type SourceReply<T> = (error: Error | undefined, value: T | undefined) => void;

/**
 * The connection that a cache follows. Replies and events are delivered synchronously, in the order of the connection. A read that was
 * lost with its connection is answered with an error after the session's new state was reported, and before the next connection stands.
 */
export interface Source {
  session(): { readonly state: string; readonly epoch: number };
  onSession(listener: (session: { readonly state: string; readonly epoch: number }) => void): () => void;
  get(path: string, reply: SourceReply<{ readonly data: Uint8Array; readonly stat: Stat }>): void;
  stat(path: string, reply: SourceReply<Stat>): void;
  children(path: string, reply: SourceReply<readonly string[]>): void;
  /** The reply comes when every write that was acknowledged to any client before the call can be read here. */
  sync(path: string, reply: SourceReply<true>): void;
  /**
   * Reports every change at and below `root`, which need not exist. `onReady` is called when the watch is set, and again whenever it is
   * set anew after events may have been missed. The returned function removes the watch.
   */
  watch(root: string, onEvent: (event: SourceEvent) => void, onReady: () => void): () => Promise<void>;
}
