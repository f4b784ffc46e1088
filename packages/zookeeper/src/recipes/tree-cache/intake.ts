import { NoNode } from "../../errors.ts";
import type { WatchEvent, ZooKeeperClient } from "../../types.ts";
import type { Effects } from "./effects.ts";
import type { FetchQueue } from "./fetch-queue.ts";
import type { Playback } from "./playback.ts";
import type { Interest } from "./types.ts";

/** What the parts of a cache share. */
export interface Machinery {
  readonly client: ZooKeeperClient;
  readonly interest: (path: string) => Interest;
  readonly descend: (path: string) => boolean;
  readonly fetches: FetchQueue;
  readonly playback: Playback;
  readonly effects: Effects;
}

/** Turns watch events into effects, in their order; those that need the data wait for a read of it. */
export class Intake {
  readonly #on: Machinery;
  readonly #failed: (error: unknown, path: string) => void;
  /** Paths whose last event waits for a read that has not been sent: that read will see later changes too. */
  readonly #unsent = new Set<string>();

  constructor(machinery: Machinery, failed: (error: unknown, path: string) => void) {
    this.#on = machinery;
    this.#failed = failed;
  }

  take({ type, path }: WatchEvent): void {
    if (type === "created" || type === "data") this.#arrived(path, type === "created");
    else if (type === "deleted") this.#departed(path);
  }

  #arrived(path: string, isNew: boolean): void {
    const { interest, playback, effects } = this.#on;
    const wanted = interest(path);
    if (wanted === "data") this.#fetch(path);
    else if (wanted === "name" && isNew) playback.push(() => effects.name(path));
  }

  #departed(path: string): void {
    const { playback, effects } = this.#on;
    // The read that waits belongs before this event: what comes after must get one of its own.
    this.#unsent.delete(path);
    playback.push(() => effects.remove(path));
  }

  #fetch(path: string): void {
    if (this.#unsent.has(path)) return;
    const { client, fetches, playback, effects } = this.#on;
    const slot = playback.reserve();
    this.#unsent.add(path);
    fetches.add("live", async () => {
      this.#unsent.delete(path);
      try {
        const read = await client.get(path);
        playback.settle(slot, () => effects.data(path, read));
      } catch (error) {
        const gone = error instanceof NoNode;
        playback.settle(slot, () => (gone ? effects.remove(path) : undefined));
        if (!gone) this.#failed(error, path);
      }
    });
  }
}
