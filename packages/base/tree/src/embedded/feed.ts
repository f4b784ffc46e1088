import type { Change, Feed, FeedOptions } from "../contract.ts";
import type { TreeEvent } from "../engine/index.ts";
import { TreeClosed } from "../errors.ts";
import type { TreeCore } from "./core.ts";

/**
 * A feed within the process that has the tree open. It needs no watches and no reads: the core reports events synchronously
 * with the change, so the feed takes the state of the path at that moment, and reports it once it is durable, before the
 * writer gets its own result. No event can be lost, so a resync finds no differences.
 */
export class CoreFeed implements Feed {
  readonly synced: Promise<void>;
  readonly #core: TreeCore;
  readonly #root: string;
  readonly #options: FeedOptions;
  /** Called for each event that is reported, for the tree's counters. */
  readonly #counted: () => void;
  readonly #synced = Promise.withResolvers<void>();
  readonly #unsubscribe: () => void;
  /** Called once, at the end of the feed. */
  readonly #left: () => void;
  #closed = false;

  constructor(core: TreeCore, root: string, options: FeedOptions, counted: () => void, left: () => void) {
    this.#core = core;
    this.#root = root;
    this.#options = options;
    this.#counted = counted;
    this.#left = left;
    this.synced = this.#synced.promise;
    // A caller that closes the feed early may never await `synced`; its rejection must not crash the process.
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

  /** Always 0: a feed within the process reads memory and has nothing to wait for. */
  pending(): { readonly events: number; readonly walk: number } {
    return { events: 0, walk: 0 };
  }

  async close(): Promise<void> {
    this.end();
  }

  /** Ends the feed. Nothing is reported after this. */
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

  /** Reports what is there at the start, parents before children. Synchronous, so no event can come in between. */
  #walk(path: string): void {
    if (this.#core.stat(path) === undefined) return;
    this.#put(path, true);
    if (this.#options.descend?.(path) === false) return;
    const prefix = path === "/" ? "/" : `${path}/`;
    for (const name of this.#core.children(path)) this.#walk(prefix + name);
  }

  /** Reports the final state of each path once, although one commit may change a path several times. */
  #follow(events: readonly TreeEvent[]): void {
    const seen = new Set<string>();
    for (const { type, path } of events) {
      if (type === "childrenChanged" || seen.has(path) || !this.#covers(path)) continue;
      seen.add(path);
      if (this.#core.stat(path) !== undefined) this.#put(path, type !== "changed");
      else if (type !== "created") this.#remove(path);
    }
  }

  /** `fresh`: the znode is new, or was deleted and created again within the commit. */
  #put(path: string, fresh: boolean): void {
    const interest = this.#options.interest(path);
    // With interest in names alone a change of data is no news.
    if (interest === "none" || (interest === "name" && !fresh)) return;
    this.#counted();
    const stat = this.#core.stat(path);
    if (interest === "name" || stat === undefined) this.#tell({ type: "put", path });
    // Taken now and not in `release`: by then a later commit may have changed the znode.
    else this.#tell({ type: "put", path, data: Uint8Array.from(this.#core.data(path)), stat });
  }

  #remove(path: string): void {
    if (this.#options.interest(path) === "none") return;
    this.#counted();
    this.#tell({ type: "remove", path });
  }

  /** Reports a change when it is durable. Nothing is reported after `end` or a failure of the store; `failed` gets the reason. */
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
