import type { Data } from "../../types.ts";
import type { Stat } from "../../wire/messages.ts";
import type { KnownPaths } from "./known-paths.ts";
import type { TreeCacheChange } from "./types.ts";

/** Changes the cache by what was learnt, and tells the owner what is news. */
export class Effects {
  readonly #known: KnownPaths;
  readonly #tell: (change: TreeCacheChange) => void;

  constructor(known: KnownPaths, tell: (change: TreeCacheChange) => void) {
    this.#known = known;
    this.#tell = tell;
  }

  /** A read of a path's data. Reads may be played back after a newer one: mzxid never goes back on one path. */
  data(path: string, { data, stat }: Data): void {
    const old = this.#known.get(path)?.stat;
    if (old !== undefined && stat.mzxid <= old.mzxid) {
      this.unchanged(path, stat);
      return;
    }
    this.#known.set(path, { data, stat });
    this.#tell({ type: "put", path, data, stat });
  }

  /** A stat that shows no new data, but perhaps newer counts of the children: kept, and not reported. */
  unchanged(path: string, stat: Stat): void {
    const old = this.#known.get(path);
    if (old?.stat === undefined || old.data === undefined) return;
    if (stat.mzxid === old.stat.mzxid && stat.pzxid > old.stat.pzxid) {
      this.#known.set(path, { data: old.data, stat });
    }
  }

  /** A path of interest "name" is there. */
  name(path: string): void {
    if (this.#known.get(path) !== undefined) return;
    this.#known.set(path, {});
    this.#tell({ type: "put", path });
  }

  /** A path is gone, and so is what was below it. */
  remove(path: string): void {
    for (const gone of this.#known.removeTree(path)) this.#tell({ type: "remove", path: gone });
  }
}
