import { type AccessList, parentOf } from "../engine/index.ts";

/** What happened to a znode. */
export type WatchEventType = "created" | "deleted" | "changed" | "childrenChanged";

/** `data` and `child` watches fire once; the other two persist. As in ZooKeeper, `data` serves both getData and exists. */
export type WatchKind = "data" | "child" | "persistent" | "recursive";

const KINDS: readonly WatchKind[] = ["data", "child", "persistent", "recursive"];

/** The part of a connection that the table uses. */
export interface Watcher {
  /** `acl`: the access list of the path at that moment. */
  notify(type: WatchEventType, path: string, acl: AccessList): void;
}

/**
 * All watches, by kind, path and connection. The rules are those of ZooKeeper 3.6 and later: a connection gets one event per
 * change, however many of its watches match; a deletion also fires the one-shot child watches of the path; recursive watches
 * never get `childrenChanged`.
 */
export class WatchTable {
  readonly #tables: Record<WatchKind, Map<string, Set<Watcher>>> = {
    data: new Map(),
    child: new Map(),
    persistent: new Map(),
    recursive: new Map(),
  };
  /** The same watches by connection, for its end. */
  readonly #byWatcher = new Map<Watcher, Map<WatchKind, Set<string>>>();
  /** Weight of each connection's watches, which its limit is about. */
  readonly #weights = new Map<Watcher, number>();
  #size = 0;

  /** Number of watches of all connections. */
  get size(): number {
    return this.#size;
  }

  /** Numbers of watching connections, watched paths and watches, for the four-letter word `wchs`. */
  sums(): { readonly watchers: number; readonly paths: number; readonly size: number } {
    const paths = new Set<string>();
    for (const kind of KINDS) for (const path of this.#tables[kind].keys()) paths.add(path);
    let watchers = 0;
    for (const weight of this.#weights.values()) if (weight > 0) watchers++;
    return { watchers, paths: paths.size, size: this.#size };
  }

  /** Number of a connection's watches, with long paths counted several times because of the memory they need. */
  weightOf(watcher: Watcher): number {
    return this.#weights.get(watcher) ?? 0;
  }

  /** For requests that ask or remove; never changes anything. */
  has(watcher: Watcher, kind: WatchKind, path: string): boolean {
    return this.#byWatcher.get(watcher)?.get(kind)?.has(path) ?? false;
  }

  /** A second equal watch counts as one, as in ZooKeeper. The caller checks the limit first. */
  add(watcher: Watcher, kind: WatchKind, path: string): void {
    const watchers = entry(this.#tables[kind], path, () => new Set<Watcher>());
    if (watchers.has(watcher)) return;
    watchers.add(watcher);
    const kinds = entry(this.#byWatcher, watcher, () => new Map<WatchKind, Set<string>>());
    entry(kinds, kind, () => new Set<string>()).add(path);
    this.#size++;
    this.#weights.set(watcher, this.weightOf(watcher) + weight(path));
  }

  /** Returns whether there was such a watch. */
  remove(watcher: Watcher, kind: WatchKind, path: string): boolean {
    const kinds = this.#byWatcher.get(watcher);
    if (!kinds?.get(kind)?.delete(path)) return false;
    this.#size--;
    this.#weights.set(watcher, this.weightOf(watcher) - weight(path));
    const watchers = this.#tables[kind].get(path);
    watchers?.delete(watcher);
    if (watchers?.size === 0) this.#tables[kind].delete(path);
    return true;
  }

  /** For the end of a connection. */
  removeAll(watcher: Watcher): void {
    const kinds = this.#byWatcher.get(watcher);
    if (kinds === undefined) return;
    for (const kind of KINDS) for (const path of kinds.get(kind) ?? []) this.remove(watcher, kind, path);
    this.#byWatcher.delete(watcher);
    this.#weights.delete(watcher);
  }

  /** Sends an event to all matching connections. One-shot watches that fire are removed first. */
  trigger(type: WatchEventType, path: string, acl: AccessList): void {
    if (this.#size === 0) return;
    const notified = new Set<Watcher>();
    if (type !== "childrenChanged") this.#take("data", path, notified);
    if (type === "childrenChanged" || type === "deleted") this.#take("child", path, notified);
    for (const watcher of this.#tables.persistent.get(path) ?? []) notified.add(watcher);
    if (type !== "childrenChanged" && this.#tables.recursive.size > 0) this.#recursive(path, notified);
    for (const watcher of notified) watcher.notify(type, path, acl);
  }

  /** Removes one-shot watches before any event is sent, so that a watch which a client sets in reaction is not removed. */
  #take(kind: "data" | "child", path: string, notified: Set<Watcher>): void {
    const watchers = this.#tables[kind].get(path);
    if (watchers === undefined) return;
    for (const watcher of [...watchers]) {
      notified.add(watcher);
      this.remove(watcher, kind, path);
    }
  }

  /** Walks up from the path: the cost is its depth, not the number of watches. */
  #recursive(path: string, notified: Set<Watcher>): void {
    const table = this.#tables.recursive;
    for (let at = path; ; at = parentOf(at)) {
      for (const watcher of table.get(at) ?? []) notified.add(watcher);
      if (at === "/") return;
    }
  }
}

/** One more for each 256 characters. */
function weight(path: string): number {
  return 1 + (path.length >> 8);
}

function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  return made;
}
