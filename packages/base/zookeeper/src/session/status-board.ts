import type { Status } from "../types.ts";
import { surface } from "./pending.ts";

/** How many changes a slow reader of `status()` may lag behind. Older changes are dropped; the latest is always delivered. */
const KEPT = 1_000;

interface Reader {
  /** The oldest first; at most KEPT. */
  readonly unread: Status[];
  /** Ends the reader's wait; undefined before its first one. */
  wake: (() => void) | undefined;
}

/**
 * The present status and its subscribers. Listeners are called within the change, so they know of a lost session before anything else
 * happens; readers of `read` get it in a later turn.
 */
export class StatusBoard {
  #current: Status;
  readonly #listeners = new Set<(status: Status) => void>();
  readonly #readers = new Set<Reader>();

  constructor(first: Status) {
    this.#current = first;
  }

  get current(): Status {
    return this.#current;
  }

  /** An error of a listener is thrown outside of this call, and the other listeners are called. */
  post(status: Status): void {
    this.#current = status;
    for (const listener of this.#listeners) {
      try {
        listener(status);
      } catch (thrown) {
        surface(thrown);
      }
    }
    for (const reader of this.#readers) {
      reader.unread.push(status);
      if (reader.unread.length > KEPT) reader.unread.shift();
      reader.wake?.();
    }
  }

  /** The same listener may be given twice. Returns a function that unsubscribes. */
  listen(listener: (status: Status) => void): () => void {
    const own = (status: Status) => listener(status);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** The present status, then each change; ends after "closed". A reader that is left with `break` is forgotten. */
  async *read(): AsyncGenerator<Status, void, undefined> {
    const reader: Reader = { unread: [this.#current], wake: undefined };
    this.#readers.add(reader);
    try {
      for (;;) {
        const next = reader.unread.shift();
        if (next === undefined) {
          await new Promise<void>((resolve) => {
            reader.wake = resolve;
          });
          continue;
        }
        yield next;
        if (next.state === "closed") return;
      }
    } finally {
      this.#readers.delete(reader);
    }
  }
}
