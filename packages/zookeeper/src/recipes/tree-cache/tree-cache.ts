import type { ZooKeeper } from "../../client/zookeeper.ts";
import { BadArguments, Closed, NoAuth } from "../../errors.ts";
import type { Stat } from "../../wire/messages.ts";
import { ClientSource } from "./client-source.ts";
import { Follower } from "./follower.ts";
import type { TreeCacheOptions } from "./types.ts";

/** What the cache knows of a path. Both are given for paths of interest "data" only. */
export interface CachedZnode {
  readonly data?: Uint8Array;
  readonly stat?: Stat;
}

/**
 * A picture of a subtree that follows the server: one persistent-recursive watch, and a comparison with the server after every gap.
 * States in between may be skipped, but per path they never go back, and the last one always arrives.
 */
export class TreeCache implements AsyncDisposable {
  readonly root: string;
  readonly #known = new Map<string, CachedZnode>();
  readonly #follower: Follower;

  /** Use `openTreeCache`. */
  constructor(client: ZooKeeper, root: string, options: TreeCacheOptions) {
    this.root = root;
    const source = new ClientSource(client);
    const cache: TreeCacheOptions = {
      descend: (path) => options.interest(path) !== "name",
      ...options,
      onChange: (change) => {
        if (change.type === "put") {
          const { data, stat } = change;
          this.#known.set(change.path, data === undefined || stat === undefined ? {} : { data, stat });
        } else if (change.type === "remove") this.#known.delete(change.path);
        options.onChange(change);
      },
    };
    this.#follower = new Follower(source, root, cache, {
      clock: client.clock,
      random: client.random,
      resyncSpreadMs: 0,
      onEnd: () => source.close(),
      closed: () => new Closed({ op: "tree cache", path: root }),
      isForbidden: (error) => error instanceof NoAuth,
    });
    this.#follower.start();
  }

  /** Resolves with the first `synced`; rejects when the cache is closed before. */
  get synced(): Promise<void> {
    return this.#follower.synced;
  }

  /** Paths that are known now, without those of interest "none". */
  get size(): number {
    return this.#known.size;
  }

  get(path: string): CachedZnode | undefined {
    return this.#known.get(path);
  }

  entries(): IterableIterator<[path: string, znode: CachedZnode]> {
    return this.#known.entries();
  }

  /** Compares everything with the server: when it resolves, whatever was written before the call is in here. */
  resync(): Promise<void> {
    return this.#follower.resync();
  }

  /** Reads that are owed, under way included: for events that came, and for a comparison. */
  pending(): { readonly events: number; readonly walk: number } {
    return this.#follower.pending();
  }

  close(): Promise<void> {
    return this.#follower.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Follows `root`, which need not exist, and all below it. */
export function openTreeCache(client: ZooKeeper, root: string, options: TreeCacheOptions): TreeCache {
  if (!root.startsWith("/") || (root !== "/" && root.endsWith("/"))) {
    throw new BadArguments("the root of a tree cache is an absolute path without a slash at its end", {
      path: root,
    });
  }
  return new TreeCache(client, root, options);
}
