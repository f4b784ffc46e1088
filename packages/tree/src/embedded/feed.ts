import type { Change, Feed, FeedOptions } from "../contract.ts";
import { TreeClosed } from "../errors.ts";
import type { TreeCore } from "./core.ts";

/**
 * A feed inside the process. It needs no watches, no reads and no parking: events are told synchronously with the
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
    this.#unsubscribe = core.onEvent((event) => {
      if (event.type !== "childrenChanged" && this.#covers(event.path)) this.#note(event.type, event.path);
    });
    this.#walk(root);
    this.#tell({ type: "synced" }, () => this.#synced.resolve());
  }

  async resync(): Promise<void> {
    if (this.#closed) throw new TreeClosed("resync");
    await new Promise<void>((resolve, reject) => {
      this.#tell({ type: "gap" });
      this.#tell({ type: "synced" }, resolve, reject);
    });
  }

  async close(): Promise<void> {
    this.end();
  }

  /** Nothing is told after this. */
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
    this.#note("created", path);
    const prefix = path === "/" ? "/" : `${path}/`;
    for (const name of this.#core.children(path)) this.#walk(prefix + name);
  }

  #note(type: "created" | "changed" | "deleted", path: string): void {
    const interest = this.#options.interest(path);
    if (interest === "none") return;
    this.#counted();
    if (type === "deleted") this.#tell({ type: "remove", path });
    else if (interest === "data") this.#tell(this.#put(path));
    else if (type === "created") this.#tell({ type: "put", path });
  }

  /** The state at the moment of the event. A znode that a later part of the same commit deleted is only named. */
  #put(path: string): Change {
    const stat = this.#core.stat(path);
    return stat === undefined
      ? { type: "remove", path }
      : { type: "put", path, data: this.#core.data(path), stat };
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
