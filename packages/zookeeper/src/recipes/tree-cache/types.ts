import type { ZooKeeperError } from "../../errors.ts";
import type { Clock } from "../../types.ts";
import type { Stat } from "../../wire/messages.ts";

/** How much of a path the owner wants: its data, only that it exists, or nothing. */
export type Interest = "data" | "name" | "none";

export type TreeCacheChange =
  /** A znode is there. `data` and `stat` are given for paths of interest "data" only. */
  | { readonly type: "put"; readonly path: string; readonly data?: Buffer; readonly stat?: Stat }
  | { readonly type: "remove"; readonly path: string }
  /** Events may have been missed: what follows, up to `synced`, is what differs from what was reported before. */
  | { readonly type: "gap" }
  /** Everything has been compared with the server. */
  | { readonly type: "synced" };

export interface TreeCacheOptions {
  /** Must be pure. Paths of interest "name" and "none" are never fetched; "none" hides nothing beneath it. */
  readonly interest: (path: string) => Interest;
  /** Whether a walk lists the children of a path. Must be pure. Default: of every path but those of interest "name". */
  readonly descend?: (path: string) => boolean;
  /** Called synchronously and in order, with the cache already changed. Must not throw. */
  readonly onChange?: (change: TreeCacheChange) => void;
  /** A path that cannot be read (NoAuth), or a walk that failed and will be repeated. */
  readonly onProblem?: (error: ZooKeeperError) => void;
  /** Reads in flight at most. Default 256. */
  readonly concurrency?: number;
  readonly clock?: Clock;
}

/** What the cache knows of a path. */
export interface CachedZnode {
  /** Both are given for paths of interest "data" only. */
  readonly data?: Buffer;
  readonly stat?: Stat;
}

/**
 * A picture of a subtree that follows the server: one persistent-recursive watch, and a comparison with the server
 * after every gap. States in between may be skipped, but per path they never go back, and the last one always arrives.
 */
export interface TreeCache extends AsyncDisposable {
  readonly root: string;
  /** Resolves with the first `synced`; rejects when the cache is closed before. */
  readonly synced: Promise<void>;
  /** Paths that are known now, without those of interest "none". */
  readonly size: number;
  /** Reads that wait to be sent, and results that wait for earlier ones: figures for metrics. */
  readonly backlog: { readonly fetches: number; readonly playback: number };
  get(path: string): CachedZnode | undefined;
  /** Names below `path` that are known or lead to something that is. */
  children(path: string): Iterable<string>;
  entries(): IterableIterator<[path: string, znode: CachedZnode]>;
  /** Compares everything with the server now, or joins the comparison that runs. */
  resync(): Promise<void>;
  close(): Promise<void>;
}
