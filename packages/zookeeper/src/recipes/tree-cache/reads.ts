/** A read that calls `done` once, when it was answered. */
export type Read = (done: () => void) => void;

/**
 * The reads of one cache: a bounded number in flight, those for live events first and in their order, the walk's behind
 * them. A path that waits for its turn is read once, however many events asked for it.
 */
export class Reads {
  readonly #limit: number;
  readonly #readPath: (path: string, done: () => void) => void;
  readonly #onIdle: () => void;
  readonly #live = new Set<string>();
  /** Paths being read for an event, and whether another event came meanwhile. */
  readonly #reading = new Map<string, boolean>();
  #walk: Read[] = [];
  #walking = 0;
  #inFlight = 0;
  #generation = 0;
  #pumping = false;

  /** `onIdle` is called whenever a walk's last read has been answered. */
  constructor(limit: number, readPath: (path: string, done: () => void) => void, onIdle: () => void) {
    this.#limit = limit;
    this.#readPath = readPath;
    this.#onIdle = onIdle;
  }

  /** Asks for the state of a path, for an event. */
  live(path: string): void {
    if (this.#reading.has(path)) this.#reading.set(path, true);
    else this.#live.add(path);
    this.pump();
  }

  /** The path is gone: nothing needs to be read of it unless another event comes. */
  forget(path: string): void {
    this.#live.delete(path);
    if (this.#reading.has(path)) this.#reading.set(path, false);
  }

  /** Adds a read to the walk; `pump` starts it. */
  walk(read: Read): void {
    this.#walk.push(read);
    this.#walking++;
  }

  /** What is owed, in flight included. */
  pending(): { readonly events: number; readonly walk: number } {
    return { events: this.#live.size + this.#reading.size, walk: this.#walking };
  }

  /** Drops what waits, and the answers of what is in flight no longer count. */
  clear(): void {
    this.#generation++;
    this.#live.clear();
    this.#reading.clear();
    this.#walk = [];
    this.#walking = 0;
    this.#inFlight = 0;
  }

  /** Starts what there is room for. A read may be answered at once, so this must not run within itself. */
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
