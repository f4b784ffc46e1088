import type { Change, Feed, FeedOptions } from "../contract.ts";
import type { TreeEvent } from "../engine/index.ts";
import { TreeClosed } from "../errors.ts";
import type { TreeCore } from "./core.ts";

/**
 * A feed inside the process. It needs no watches, no reads and no parking: events are reported synchronously with the
 * change, so what a path holds is taken at that moment and told when it is durable, ahead of the writer's own result.
 * Nothing can be lost, so a resync has no differences to tell.
 */
export class CoreFeed implements Feed {
  readonly synced: Promise<void>;
  readonly #core: TreeCore;
  readonly #root: string;
  readonly #options: FeedOptions;
  readonly #counted: () => void;
  readonly #synced = Promise.withResolvers<void>();
  readonly #unsubscribe: () => void;
  readonly #left: () => void;
  #closed = false;

  constructor(core: TreeCore, root: string, options: FeedOptions, counted: () => void, left: () => void) {
    this.#core = core;
    this.#root = root;
    this.#options = options;
    this.#counted = counted;
    this.#left = left;
    this.synced = this.#synced.promise;
    // Whoever closes a feed early need not have waited for it.
    this.synced.catch(() => undefined);
    this.#unsubscribe = core.onEvents((events) => this.#follow(events));
    this.#walk(root);
    this.#tell(
      { type: "synced" },
      () => this.#synced.resolve(),
      (error) => this.#synced.reject(error),
    );
  }

  async resync(): Promise<void> {
    if (this.#closed) throw new TreeClosed("resync");
    await new Promise<void>((resolve, reject) => {
      this.#tell({ type: "synced" }, resolve, reject);
    });
  }

  /** Nothing is ever read: what an event tells of is at hand. */
  pending(): { readonly events: number; readonly walk: number } {
    return { events: 0, walk: 0 };
  }

  async close(): Promise<void> {
    this.end();
  }

  /** Nothing is reported after this. */
  end(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#unsubscribe();
    this.#synced.reject(new TreeClosed(`the feed of ${this.#root}`));
    this.#left();
  }

  #covers(path: string): boolean {
    const root = this.#root;
    if (root === "/" || path === root) return true;
    return path.length > root.length && path[root.length] === "/" && path.startsWith(root);
  }

  #walk(path: string): void {
    if (this.#core.stat(path) === undefined) return;
    this.#put(path, true);
    if (this.#options.descend?.(path) === false) return;
    const prefix = path === "/" ? "/" : `${path}/`;
    for (const name of this.#core.children(path)) this.#walk(prefix + name);
  }

  /** One change may alter a path several times; its final state is reported once. */
  #follow(events: readonly TreeEvent[]): void {
    const seen = new Set<string>();
    for (const { type, path } of events) {
      if (type === "childrenChanged" || seen.has(path) || !this.#covers(path)) continue;
      seen.add(path);
      if (this.#core.stat(path) !== undefined) this.#put(path, type !== "changed");
      else if (type !== "created") this.#remove(path);
    }
  }

  /** `fresh`: the znode was not there before, or was another one. */
  #put(path: string, fresh: boolean): void {
    const interest = this.#options.interest(path);
    if (interest === "none" || (interest === "name" && !fresh)) return;
    this.#counted();
    const stat = this.#core.stat(path);
    if (interest === "name" || stat === undefined) this.#tell({ type: "put", path });
    else this.#tell({ type: "put", path, data: Uint8Array.from(this.#core.data(path)), stat });
  }

  #remove(path: string): void {
    if (this.#options.interest(path) === "none") return;
    this.#counted();
    this.#tell({ type: "remove", path });
  }

  #tell(change: Change, then?: () => void, failed?: (error: Error) => void): void {
    this.#core.release((error) => {
      if (this.#closed || error !== undefined) {
        failed?.(error ?? new TreeClosed("resync"));
        return;
      }
      this.#options.onChange(change);
      then?.();
    });
  }
}
