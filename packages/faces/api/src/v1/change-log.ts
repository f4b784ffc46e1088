import { keyOf } from "./changes.ts";
import type { Boot, Kept, StoredChanges } from "./stored-changes.ts";

/** Text for clients that see the same, and how far it brings them. Empty where nothing is new. */
export interface Piece {
  readonly bytes: Uint8Array;
  /** The number of the change after it. */
  readonly next: number;
}

/** The number of changes kept for clients that are behind or reconnect; it bounds the memory for any number of clients. */
export const KEPT = 8_192;

/** Changes in their order, numbered for good; each client reads them from a place of its own. */
export class ChangeLog {
  /** Names of processes in event ids. Numbers of another log, or of a process that this one does not go on after, count other changes. */
  readonly #boots: readonly Boot[];
  /** True: `add` gathers, and `settle` decides what counts as a change. False: every change is kept as it comes. */
  readonly #newestOnly: boolean;
  /** The one at index i has the number `#first + i`. */
  readonly #kept: Kept[] = [];
  /** Things that changed since the last `settle`: their newest state, and the state before. */
  readonly #gathered = new Map<string, Kept>();
  /** The last kept change of each thing. */
  readonly #last = new Map<string, Kept>();
  /** Since the last `settle`, and those before it: a client that is a little behind needs them. */
  #pieces = new Map<string, Piece>();
  #formerPieces: ReadonlyMap<string, Piece> = new Map();
  readonly #stored: StoredChanges | undefined;
  /** The number of the first kept change. Only grows. */
  #first: number;

  /** `newestOnly`: between two calls of `settle` things change once, however often they changed. `stored`: outlives the process. */
  constructor(name: string, options: { readonly newestOnly: boolean; readonly stored?: StoredChanges }) {
    this.#newestOnly = options.newestOnly;
    this.#stored = options.stored;
    this.#boots = options.stored?.boots ?? [[name, 1]];
    this.#first = options.stored?.first ?? 1;
    this.#kept.push(...(options.stored?.changes ?? []));
    for (const change of options.stored?.missed() ?? []) this.add(change);
  }

  /** The number of the first change that is kept. */
  get first(): number {
    return this.#first;
  }

  /** Of the change that comes next. */
  get next(): number {
    return this.#first + this.#kept.length;
  }

  /** How many things have changed since the last `settle`. */
  get gathered(): number {
    return this.#gathered.size;
  }

  /** A change by its number; undefined: it is kept no longer, or has not happened yet. */
  at(number: number): Kept | undefined {
    return this.#kept[number - this.#first];
  }

  /**
   * Whether a client that wants only the newest states, and may see all things, can skip a kept change because a later one of the same
   * thing follows. So a client that is far behind catches up with fewer events.
   */
  isOutdated(change: Kept): boolean {
    return this.#newestOnly && this.#last.get(keyIn(change)) !== change;
  }

  /** An id to be sent: what it counts is stored. */
  id(number: number): string {
    this.#stored?.flush();
    return `${this.#boots.at(-1)![0]}.${number}`;
  }

  /** The number of the change after this event id, kept or not; undefined: the id belongs to another process or log. */
  numberAfter(id: string): number | undefined {
    const [, name, digits] = /^(\w+)\.(\d{1,15})$/.exec(id) ?? [];
    const next = Number(digits) + 1;
    const at = this.#boots.findIndex(([boot]) => boot === name);
    // A process that is not known has no numbers.
    const [, from = Number.POSITIVE_INFINITY] = this.#boots[at] ?? [];
    // After a loss of power the file may lack changes that were sent. The numbers beyond it were given again, by the next process.
    const [, end = this.next] = this.#boots[at + 1] ?? [];
    return next >= from && next <= end ? next : undefined;
  }

  /** A change of the view. Called for every event, so it costs O(1). */
  add(change: Kept): void {
    if (!this.#newestOnly) return this.#keep(change);
    const key = keyIn(change);
    const former = this.#gathered.get(key);
    // The client saw before it the state before the first change of those that are gathered.
    const both = former !== undefined && "kind" in former && "kind" in change;
    this.#gathered.set(key, both ? { ...change, before: former.before } : change);
  }

  /** Ends what counts as one change of a thing. */
  settle(): void {
    // Things that appeared and disappeared since the last `settle` were sent to no client.
    for (const change of this.#gathered.values())
      if ("complete" in change || change.before !== undefined || change.after !== undefined)
        this.#keep(change);
    this.#gathered.clear();
    this.#formerPieces = this.#pieces;
    this.#pieces = new Map();
  }

  /** The piece from there on for an audience; made by the first client of it that gets there, and the others are given the same bytes. */
  piece(audience: string, from: number, make: () => Piece): Piece {
    const key = `${from} ${audience}`;
    const known = this.#pieces.get(key) ?? this.#formerPieces.get(key);
    if (known !== undefined) return known;
    const made = make();
    // Nothing is there yet: what comes next begins at this place.
    if (made.next > from) this.#pieces.set(key, made);
    return made;
  }

  /** `forever`: nobody goes on from here after a restart either. */
  close(forever: boolean): void {
    if (forever) this.#stored?.remove();
    else this.#stored?.close();
  }

  /** Gives a change the next number. O(1) but for the dropping of old ones, which is O(KEPT) once in KEPT / 4 changes. */
  #keep(change: Kept): void {
    this.#kept.push(change);
    this.#stored?.add(change);
    if (this.#newestOnly) this.#last.set(keyIn(change), change);
    // A quarter at once: moving all others for each change would cost more than keeping some more.
    if (this.#kept.length < KEPT * 1.25) return;
    const dropped = this.#kept.splice(0, this.#kept.length - KEPT);
    this.#first += dropped.length;
    for (const one of dropped) if (this.#last.get(keyIn(one)) === one) this.#last.delete(keyIn(one));
  }
}

/** All changes of completeness are of one thing. */
function keyIn(change: Kept): string {
  return "complete" in change ? "" : keyOf(change);
}
