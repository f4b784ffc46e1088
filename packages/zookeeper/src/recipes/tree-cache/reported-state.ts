import type { Stat } from "../../wire/messages.ts";
import type { Interest, TreeCacheChange, TreeCacheOptions } from "./types.ts";

interface Known {
  mzxid: bigint;
  version: number;
  /** The walk that saw it last. */
  walk: number;
}

/** What was reported to a cache's owner. All reports pass through here, so that versions of a path never go back. */
export class ReportedState {
  readonly #interest: (path: string) => Interest;
  readonly #onChange: (change: TreeCacheChange) => void;
  readonly #known = new Map<string, Known>();
  #walk = 0;

  constructor(options: TreeCacheOptions) {
    this.#interest = options.interest;
    this.#onChange = options.onChange;
  }

  interest(path: string): Interest {
    return this.#interest(path);
  }

  has(path: string): boolean {
    return this.#known.has(path);
  }

  /** Takes a state of a path whose interest is "data"; one that is older than what was reported is dropped. */
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

  /** Takes the existence of a path whose interest is "name". */
  name(path: string): void {
    const known = this.#known.get(path);
    if (known !== undefined) {
      known.walk = this.#walk;
      return;
    }
    this.#known.set(path, { mzxid: -1n, version: -1, walk: this.#walk });
    this.#onChange({ type: "put", path });
  }

  remove(path: string): void {
    if (this.#known.delete(path)) this.#onChange({ type: "remove", path });
  }

  /** Marks a path as seen; true when `stat` shows no change since it was reported. */
  isCurrent(path: string, stat: Stat): boolean {
    const known = this.#known.get(path);
    if (known === undefined) return false;
    known.walk = this.#walk;
    return !isNewer(stat, known);
  }

  gap(): void {
    this.#onChange({ type: "gap" });
  }

  beginWalk(): void {
    this.#walk++;
  }

  /** Tells that the walk is complete: what it did not see is gone. */
  endWalk(): void {
    for (const [path, known] of this.#known) if (known.walk !== this.#walk) this.remove(path);
    this.#onChange({ type: "synced" });
  }
}

/** Within one transaction (create and set in one commit) the version decides. */
function isNewer(stat: Stat, known: Known): boolean {
  return stat.mzxid > known.mzxid || (stat.mzxid === known.mzxid && stat.version > known.version);
}
