import type { ZooKeeper } from "../../client/zookeeper.ts";
import { BadArguments, Closed, NoAuth } from "../../errors.ts";
import type { Stat } from "../../wire/messages.ts";
import { ClientSource } from "./client-source.ts";
import { Follower } from "./follower.ts";
import type { TreeCacheOptions } from "./types.ts";

/** What the cache knows of a path. Both fields are present only for paths whose interest is "data". */
export interface CachedZnode {
  readonly data?: Uint8Array;
  readonly stat?: Stat;
}

/**
 * A copy of a subtree that follows the server, by one persistent-recursive watch and a comparison with the server after every gap.
 * Intermediate states may be skipped. For each path, states never go back, and the last state always arrives.
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
      // Where only names matter, what is below does not; options may say otherwise.
      descend: (path) => options.interest(path) !== "name",
      ...options,
      onChange: (change) => {
        if (change.type === "put") {
          const { data, stat } = change;
          // Before the owner's callback, so that it reads the new state here.
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

  /** Resolves with the first `synced`; rejects when the cache is closed before that. */
  get synced(): Promise<void> {
    return this.#follower.synced;
  }

  /** Number of paths in the cache; paths of interest "none" are not counted. */
  get size(): number {
    return this.#known.size;
  }

  get(path: string): CachedZnode | undefined {
    return this.#known.get(path);
  }

  entries(): IterableIterator<[path: string, znode: CachedZnode]> {
    return this.#known.entries();
  }

  /** Compares the whole subtree with the server. When it resolves, the cache contains every write made before the call. */
  resync(): Promise<void> {
    return this.#follower.resync();
  }

  /** Number of reads that are queued or in flight: for events, and for a walk. */
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

/** Follows `root` and everything below it. `root` need not exist. Throws BadArguments when `root` is not an absolute path. */
export function openTreeCache(client: ZooKeeper, root: string, options: TreeCacheOptions): TreeCache {
  if (!root.startsWith("/") || (root !== "/" && root.endsWith("/"))) {
    throw new BadArguments("the root of a tree cache is an absolute path without a slash at its end", {
      path: root,
    });
  }
  return new TreeCache(client, root, options);
}
