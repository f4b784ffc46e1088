import type { ZooKeeper } from "../../client/zookeeper.ts";
import type { Timer, Watch, WatchEvent } from "../../types.ts";
import type { SourceEvent } from "./types.ts";

/** Delay before a watch that the server refused is requested again (milliseconds). */
const RETRY_MS = 1_000;

/** The watch of one cache. */
interface Kept {
  readonly root: string;
  readonly onReady: () => void;
  readonly listener: (event: WatchEvent) => void;
  /** Undefined until the server has set it once. */
  watch: Watch | undefined;
  /** A request is in progress, so none is sent for the same watch. */
  setting: boolean;
  timer: Timer | undefined;
  /** The cache does not want it any more. A watch that is set after this is removed at once. */
  ended: boolean;
}

/**
 * Keeps the watches of caches set. The client itself sets existing watches again on each new connection, before it sends anything else.
 * This class requests only those watches that were never set, because the connection broke before the reply.
 */
export class WatchKeeper {
  readonly #client: ZooKeeper;
  readonly #kept = new Set<Kept>();

  constructor(client: ZooKeeper) {
    this.#client = client;
  }

  /** Returns a function that ends the watch. It never rejects: a watch that cannot be removed ends with the session. */
  add(root: string, onEvent: (event: SourceEvent) => void, onReady: () => void): () => Promise<void> {
    const kept: Kept = {
      root,
      onReady,
      listener: ({ type, path }) => {
        if (type === "data") onEvent({ type: "changed", path });
        else if (type === "created" || type === "deleted") onEvent({ type, path });
      },
      watch: undefined,
      setting: false,
      timer: undefined,
      ended: false,
    };
    this.#kept.add(kept);
    if (this.#client.session.state === "connected") void this.#set(kept);
    return () => this.#end(kept);
  }

  /** Called for each new connection. Changes made while the client was disconnected caused no event, so every watch reports `onReady`. */
  connected(): void {
    for (const kept of [...this.#kept]) {
      if (kept.watch === undefined) void this.#set(kept);
      else kept.onReady();
    }
  }

  /** Asks the server for nothing: the watches end with the client's session. */
  close(): void {
    for (const kept of this.#kept) {
      kept.ended = true;
      kept.timer?.cancel();
    }
    this.#kept.clear();
  }

  async #set(kept: Kept): Promise<void> {
    if (kept.setting || kept.ended) return;
    kept.setting = true;
    kept.timer?.cancel();
    try {
      const watch = await this.#client.addWatch(kept.root, "persistent-recursive", kept.listener);
      kept.watch = watch;
      if (kept.ended) await watch.remove();
      else kept.onReady();
    } catch {
      // Requested again on the next connection, or after RETRY_MS when this connection stands.
      if (!kept.ended)
        kept.timer = this.#client.clock.setTimer(RETRY_MS, () => void this.#set(kept), { background: true });
    } finally {
      kept.setting = false;
    }
  }

  async #end(kept: Kept): Promise<void> {
    kept.ended = true;
    kept.timer?.cancel();
    this.#kept.delete(kept);
    await kept.watch?.remove().catch(() => undefined);
  }
}
