import { Heap } from "@nodeyard/runtime";

/** What can be due. The name of a timer is the id or name of the node, request, label, image, provider, host or gate. */
export type TimerKind =
  /** A node is to be looked at again: something is due by its age. */
  | "node"
  /** A node whose deletion failed may be tried again. */
  | "busy"
  /** A request may be looked at again. */
  | "request"
  /** The last write to a request may have happened: whether it did shows by now. */
  | "unsure"
  /** A request has let another pool go first for long enough. */
  | "yield"
  /** A request has waited long enough for an offer that is not registered. */
  | "offer"
  /** A label may be asked for again by min-ready. */
  | "label"
  /** It is our turn to ask for what a label lacks of its min-ready. */
  | "short"
  /** The number of spares of a label may be another one, or one of them has been free for long enough. */
  | "spares"
  /** Spares of a label may be suspended again, after one could not be. */
  | "suspend"
  /** The registered builders have had their time to begin with an image. */
  | "image"
  /** What is closed after failures may be tried again: an offering, a label in all places, the quota of a provider; by its key. */
  | "gate"
  /** A launch has waited as long as it may, by its node. */
  | "launch"
  /** The quota of a provider is read again, because a request waits for it. */
  | "quota"
  /** More of the budget of a tenant is used by now, or a month has begun. */
  | "budget"
  /** A host that went should be back by now. */
  | "host";

interface Entry {
  readonly at: number;
  readonly kind: TimerKind;
  readonly name: string;
}

/** Stale entries that are put up with before they are swept, beside as many as there are timers. */
const STALE_KEPT = 64;

/** When something is due, steady milliseconds: one time for each kind and name. The earliest is found at once. */
export class Timers {
  readonly #due = new Map<TimerKind, Map<string, Entry>>();
  /** Entries that `#due` does not have any more are stale. */
  readonly #heap = new Heap<Entry>((a, b) => a.at - b.at);
  #size = 0;

  set(kind: TimerKind, name: string, at: number): void {
    const ofKind = this.#due.get(kind) ?? new Map<string, Entry>();
    const known = ofKind.get(name);
    if (known?.at === at) return;
    if (known === undefined) this.#size++;
    const entry = { at, kind, name };
    this.#due.set(kind, ofKind.set(name, entry));
    this.#heap.push(entry);
    this.#sweep();
  }

  delete(kind: TimerKind, name: string): void {
    if (this.#due.get(kind)?.delete(name) !== true) return;
    this.#size--;
    this.#sweep();
  }

  /** Steady milliseconds at which it is due; undefined: it is not set. */
  get(kind: TimerKind, name: string): number | undefined {
    return this.#due.get(kind)?.get(name)?.at;
  }

  /** How many there are. */
  get size(): number {
    return this.#size;
  }

  /** When the first is due. */
  next(): number | undefined {
    for (let first = this.#heap.peek(); first !== undefined; first = this.#heap.peek()) {
      if (this.#isCurrent(first)) return first.at;
      this.#heap.pop();
    }
    return undefined;
  }

  /** Removes and returns one that is due at `now`; undefined when there is none. */
  take(now: number): Pick<Entry, "kind" | "name"> | undefined {
    const at = this.next();
    if (at === undefined || at > now) return undefined;
    const entry = this.#heap.pop()!;
    this.#due.get(entry.kind)!.delete(entry.name);
    this.#size--;
    return entry;
  }

  #isCurrent(entry: Entry): boolean {
    return this.#due.get(entry.kind)?.get(entry.name) === entry;
  }

  /** Drops replaced entries. Most nodes are gone long before their timer is due; kept until then, entries would pile up by the thousand. */
  #sweep(): void {
    if (this.#heap.size > 2 * this.#size + STALE_KEPT) this.#heap.keep((entry) => this.#isCurrent(entry));
  }
}
