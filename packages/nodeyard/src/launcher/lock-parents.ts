import { paths } from "@nodeyard/model";
import { TreeError } from "@nodeyard/tree";
import { type Context, treeNow } from "./context.ts";

/** Rule 7 of spec zookeeper.md section 9: lock parents are kept this long after the request is gone. */
const KEEP_MS = 8 * 3_600_000;
/** Parents looked at in one sweep, at most: the rest is for the next one. */
const PER_SWEEP = 256;

/** Removes lock parents of requests that are long gone, a bounded number at a time. */
export class LockParentSweep {
  readonly #context: Context;
  /** Ages learnt, so that each parent is read once and not at every sweep. */
  readonly #made = new Map<string, number>();

  constructor(context: Context) {
    this.#context = context;
  }

  async sweep(): Promise<void> {
    const { tree, view } = this.#context;
    if (!view.complete) return;
    const names = await tree.children(paths.requestsLock).catch((error: unknown) => {
      if (error instanceof TreeError && error.code === "tree.no_node") return [];
      throw error;
    });
    const gone = names.filter((name) => !view.requests.byId.has(name));
    for (const name of this.#made.keys()) if (view.requests.byId.has(name)) this.#made.delete(name);
    let looks = PER_SWEEP;
    for (const name of gone) {
      const parent = paths.requestLock(name);
      if (!this.#made.has(name)) {
        if (looks-- <= 0) break;
        const stat = await tree.stat(parent);
        if (stat !== undefined) this.#made.set(name, stat.mtime);
      }
      const made = this.#made.get(name);
      if (made !== undefined && treeNow(this.#context) - made > KEEP_MS) await this.#remove(name, parent);
    }
  }

  async #remove(name: string, parent: string): Promise<void> {
    const { tree } = this.#context;
    try {
      for (const contender of await tree.children(parent)) await tree.delete(`${parent}/${contender}`);
      await tree.delete(parent);
    } catch (error) {
      if (!(error instanceof TreeError) || error.outcome === "unknown") throw error;
    }
    this.#made.delete(name);
  }
}
