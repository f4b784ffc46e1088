/** A read; it calls `done` once when the answer has arrived. */
export type Read = (done: () => void) => void;

/**
 * The reads of one cache. A bounded number is in flight. Reads for live events go first, in the order of the events; reads of a walk
 * follow. A path that waits for its turn is read once, however many events marked it.
 */
export class Reads {
  readonly #limit: number;
  readonly #readPath: (path: string, done: () => void) => void;
  readonly #onIdle: () => void;
  readonly #live = new Set<string>();
  /** Paths being read for an event. The value says whether another event marked the path meanwhile, so that it must be read again. */
  readonly #reading = new Map<string, boolean>();
  #walk: Read[] = [];
  #walking = 0;
  #inFlight = 0;
  #generation = 0;
  #pumping = false;

  /** `onIdle` is called when the last read of a walk has been answered. */
  constructor(limit: number, readPath: (path: string, done: () => void) => void, onIdle: () => void) {
    this.#limit = limit;
    this.#readPath = readPath;
    this.#onIdle = onIdle;
  }

  /** Queues a read of a path that an event marked. */
  live(path: string): void {
    if (this.#reading.has(path)) this.#reading.set(path, true);
    else this.#live.add(path);
    this.pump();
  }

  /** The path was deleted: drops its queued read. Another event queues it again. */
  forget(path: string): void {
    this.#live.delete(path);
    if (this.#reading.has(path)) this.#reading.set(path, false);
  }

  /** Queues a read of the walk; `pump` starts it. */
  walk(read: Read): void {
    this.#walk.push(read);
    this.#walking++;
  }

  /** Number of reads that are queued or in flight. */
  pending(): { readonly events: number; readonly walk: number } {
    return { events: this.#live.size + this.#reading.size, walk: this.#walking };
  }

  /** Drops all queued reads and ignores the answers of those in flight. */
  clear(): void {
    this.#generation++;
    this.#live.clear();
    this.#reading.clear();
    this.#walk = [];
    this.#walking = 0;
    this.#inFlight = 0;
  }

  /** Starts reads up to the limit. A read may be answered synchronously, and its `done` pumps again, so a nested call returns at once. */
  pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    while (this.#inFlight < this.#limit && this.#next());
    this.#pumping = false;
  }

  #next(): boolean {
    for (const path of this.#live) {
      this.#live.delete(path);
      this.#reading.set(path, false);
      this.#start((done) => this.#readPath(path, done), path);
      return true;
    }
    const read = this.#walk.pop();
    if (read === undefined) return false;
    this.#start(read, undefined);
    return true;
  }

  #start(read: Read, path: string | undefined): void {
    const generation = this.#generation;
    this.#inFlight++;
    read(() => {
      if (generation !== this.#generation) return;
      this.#inFlight--;
      if (path !== undefined) {
        const again = this.#reading.get(path);
        this.#reading.delete(path);
        if (again) this.#live.add(path);
      } else if (--this.#walking === 0) {
        this.#onIdle();
      }
      this.pump();
    });
  }
}
