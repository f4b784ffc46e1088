import { parentOf } from "../paths.ts";
import type { WatchEvent, WatchListener, WatchMode } from "../types.ts";
import type { SetWatchesRequest } from "../wire/messages.ts";
import { EventType, OpCode } from "../wire/op-code.ts";
import { surface } from "./pending.ts";

/** Kinds of one-shot watches: set by getData, by exists on a missing znode, by getChildren. */
export type OneShotKind = "data" | "exist" | "child";

/** The server keeps one mode for a path and client, so all listeners on it share one. */
interface Persistent {
  readonly mode: WatchMode;
  readonly listeners: Set<WatchListener>;
}

/** Size limit of one setWatches request in bytes. A server closes the connection of a client that sends more than `jute.maxbuffer`. */
const REATTACH_BYTES = 128 * 1024;

/**
 * The watches of this client, by path. Paths are those of the user, without the chroot.
 *
 * A server knows the watches of one connection only and sends one event for all watches of a client on a path. So the client keeps its
 * own table: it calls each listener, sets everything again on the next connection, and tells one-shot watches when they were lost with
 * their session.
 */
export class WatchRegistry {
  /** Each fires once: its listeners are removed before they are called. */
  readonly #oneShots: Record<OneShotKind, Map<string, Set<WatchListener>>> = {
    data: new Map(),
    exist: new Map(),
    child: new Map(),
  };
  readonly #persistent = new Map<string, Persistent>();
  /** Listeners for every event of the client. */
  readonly #all = new Set<WatchListener>();
  /** Number of recursive watches. Without any, an event need not climb to the root. */
  #recursive = 0;

  addOneShot(kind: OneShotKind, path: string, listener: WatchListener): void {
    const map = this.#oneShots[kind];
    const found = map.get(path);
    if (found === undefined) map.set(path, new Set([listener]));
    else found.add(listener);
  }

  /** The mode of the persistent watch on exactly this path. */
  modeAt(path: string): WatchMode | undefined {
    return this.#persistent.get(path)?.mode;
  }

  /** The caller has checked with `modeAt` that the path has no watch of the other mode. */
  addPersistent(path: string, mode: WatchMode, listener: WatchListener): void {
    const found = this.#persistent.get(path);
    if (found !== undefined) {
      found.listeners.add(listener);
      return;
    }
    this.#persistent.set(path, { mode, listeners: new Set([listener]) });
    if (mode === "persistent-recursive") this.#recursive++;
  }

  /** Returns true when no listener on this path is left, so that the watch can be removed on the server too. */
  removePersistent(path: string, listener: WatchListener): boolean {
    const found = this.#persistent.get(path);
    if (!found?.listeners.delete(listener) || found.listeners.size > 0) return false;
    this.#dropPersistent(path);
    return !(["data", "exist", "child"] as const).some((kind) => this.#oneShots[kind].has(path));
  }

  /** Sends "lost" to the one-shot watches of a path, which will never fire, and drops them. */
  loseOneShots(path: string): void {
    for (const map of Object.values(this.#oneShots)) {
      const listeners = map.get(path);
      map.delete(path);
      if (listeners !== undefined) notify(listeners, { type: "lost", path, zxid: -1n });
    }
  }

  /** Drops all watches on a path. */
  removeAll(path: string): void {
    for (const map of Object.values(this.#oneShots)) map.delete(path);
    this.#dropPersistent(path);
  }

  /** The session ended, and with it all one-shot watches. `reattach` sets persistent watches again in the next session. */
  expire(): void {
    for (const map of Object.values(this.#oneShots)) {
      const lost = [...map];
      map.clear();
      for (const [path, listeners] of lost) notify(listeners, { type: "lost", path, zxid: -1n });
    }
  }

  onEvent(listener: WatchListener): () => void {
    const own: WatchListener = (event) => listener(event);
    this.#all.add(own);
    return () => this.#all.delete(own);
  }

  /** Delivers an event of the connection to the listeners it concerns. */
  dispatch(eventType: number, path: string, zxid: bigint): void {
    const type = TYPES.get(eventType);
    if (type === undefined) return;
    const event: WatchEvent = { type, path, zxid };
    notify(this.#all, event);
    if (type === "children") {
      this.#fire("child", path, event);
    } else {
      this.#fire("data", path, event);
      this.#fire("exist", path, event);
      if (type === "deleted") this.#fire("child", path, event);
    }
    const own = this.#persistent.get(path);
    if (own !== undefined) notify(own.listeners, event);
    if (this.#recursive > 0 && type !== "children") this.#climb(event);
  }

  /**
   * The requests that set all watches again on a new connection. Each request is at most half of `maxRequestBytes` long,
   * with `chrootLength` characters added to each path.
   */
  reattach(relativeZxid: bigint, maxRequestBytes: number, chrootLength: number): SetWatchesRequest[] {
    const most = Math.min(REATTACH_BYTES, maxRequestBytes / 2);
    const requests: SetWatchesRequest[] = [];
    let part = emptyPart();
    let bytes = 0;
    const add = (list: keyof Part, path: string) => {
      const size = 4 + (chrootLength + path.length) * 3;
      if (bytes > 0 && bytes + size > most) {
        requests.push({ type: OpCode.setWatches2, relativeZxid, ...part });
        part = emptyPart();
        bytes = 0;
      }
      part[list].push(path);
      bytes += size;
    };
    // Servers before 3.9 keep only the last mode that a client set on a path, so the persistent watches must come last.
    for (const [kind, list] of LISTS) for (const path of this.#oneShots[kind].keys()) add(list, path);
    for (const [path, { mode }] of this.#persistent) {
      add(mode === "persistent" ? "persistentWatches" : "persistentRecursiveWatches", path);
    }
    if (bytes > 0) requests.push({ type: OpCode.setWatches2, relativeZxid, ...part });
    return requests;
  }

  /** Notifies recursive watches above the path. Such a watch also serves one-shot child watches on its own path (see `withWatch`). */
  #climb(event: WatchEvent): void {
    const parent = parentOf(event.path);
    for (let path = parent; path !== undefined; path = parentOf(path)) {
      const above = this.#persistent.get(path);
      if (above?.mode !== "persistent-recursive") continue;
      notify(above.listeners, event);
      if (path === parent && event.type !== "data") {
        this.#fire("child", path, { type: "children", path, zxid: event.zxid });
      }
    }
  }

  /** Removed first, because a listener may set the next watch. */
  #fire(kind: OneShotKind, path: string, event: WatchEvent): void {
    const map = this.#oneShots[kind];
    if (map.size === 0) return;
    const listeners = map.get(path);
    if (listeners === undefined) return;
    map.delete(path);
    notify(listeners, event);
  }

  #dropPersistent(path: string): void {
    const found = this.#persistent.get(path);
    if (found === undefined) return;
    this.#persistent.delete(path);
    if (found.mode === "persistent-recursive") this.#recursive--;
  }
}

/** The lists of one setWatches2 request. */
type Part = Record<
  "dataWatches" | "existWatches" | "childWatches" | "persistentWatches" | "persistentRecursiveWatches",
  string[]
>;

function emptyPart(): Part {
  return {
    dataWatches: [],
    existWatches: [],
    childWatches: [],
    persistentWatches: [],
    persistentRecursiveWatches: [],
  };
}

/** In which list of the request each kind of one-shot watch belongs. */
const LISTS: readonly (readonly [OneShotKind, keyof Part])[] = [
  ["data", "dataWatches"],
  ["exist", "existWatches"],
  ["child", "childWatches"],
];

/** Events of the session are missing: the state of the connection says the same. */
const TYPES = new Map<number, WatchEvent["type"]>([
  [EventType.nodeCreated, "created"],
  [EventType.nodeDeleted, "deleted"],
  [EventType.nodeDataChanged, "data"],
  [EventType.nodeChildrenChanged, "children"],
]);

/** An error of one listener does not keep the event from the others. */
function notify(listeners: ReadonlySet<WatchListener>, event: WatchEvent): void {
  for (const listener of listeners) {
    try {
      listener(event);
    } catch (thrown) {
      surface(thrown);
    }
  }
}
