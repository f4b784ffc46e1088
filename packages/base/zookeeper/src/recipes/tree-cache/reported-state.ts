import type { Stat } from "../../wire/messages.ts";
import type { Interest, TreeCacheChange, TreeCacheOptions } from "./types.ts";

interface Known {
  /** With `version`, the newest state that was reported; -1n where only the name was. */
  mzxid: bigint;
  version: number;
  /** Number of the last walk that found the path. */
  walk: number;
}

/** What a cache has reported to its owner. Every report goes through this class, so that the version of a path never goes back. */
export class ReportedState {
  readonly #interest: (path: string) => Interest;
  readonly #onChange: (change: TreeCacheChange) => void;
  /** All paths that were reported and not removed since. */
  readonly #known = new Map<string, Known>();
  #walk = 0;

  constructor(options: TreeCacheOptions) {
    this.#interest = options.interest;
    this.#onChange = options.onChange;
  }

  interest(path: string): Interest {
    return this.#interest(path);
  }

  /** Whether a walk may ask for the stat alone. */
  has(path: string): boolean {
    return this.#known.has(path);
  }

  /** Reports a state of a path whose interest is "data". A state older than the reported one is dropped. */
  put(path: string, data: Uint8Array, stat: Stat): void {
    const known = this.#known.get(path);
    if (known === undefined) {
      this.#known.set(path, { mzxid: stat.mzxid, version: stat.version, walk: this.#walk });
    } else {
      known.walk = this.#walk;
      if (!isNewer(stat, known)) return;
      known.mzxid = stat.mzxid;
      known.version = stat.version;
    }
    this.#onChange({ type: "put", path, data, stat });
  }

  /** Reports that a path exists whose interest is "name". */
  name(path: string): void {
    const known = this.#known.get(path);
    if (known !== undefined) {
      known.walk = this.#walk;
      return;
    }
    this.#known.set(path, { mzxid: -1n, version: -1, walk: this.#walk });
    this.#onChange({ type: "put", path });
  }

  /** Reports a removal once, and only of what was reported. */
  remove(path: string): void {
    if (this.#known.delete(path)) this.#onChange({ type: "remove", path });
  }

  /** Marks a path as found by this walk. Returns true when `stat` shows no change since the last report. */
  isCurrent(path: string, stat: Stat): boolean {
    const known = this.#known.get(path);
    if (known === undefined) return false;
    known.walk = this.#walk;
    return !isNewer(stat, known);
  }

  gap(): void {
    this.#onChange({ type: "gap" });
  }

  /** Everything that is found from now on belongs to the new walk, also by events. */
  beginWalk(): void {
    this.#walk++;
  }

  /** Reports the end of a walk. Paths that the walk did not find have been deleted. */
  endWalk(): void {
    for (const [path, known] of this.#known) if (known.walk !== this.#walk) this.remove(path);
    this.#onChange({ type: "synced" });
  }
}

/** Compares by mzxid. When one transaction created and set the znode, both states have the same mzxid and the version decides. */
function isNewer(stat: Stat, known: Known): boolean {
  return stat.mzxid > known.mzxid || (stat.mzxid === known.mzxid && stat.version > known.version);
}
