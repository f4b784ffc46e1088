import type { Resources } from "@nodeyard/driver";
import type { RequestRecord } from "@nodeyard/model";
import { SortedQueue } from "./sorted-queue.ts";

/** A request that waits, with what its place in every line depends on. */
export interface Waiting {
  readonly id: string;
  readonly relativePriority: number;
  readonly record: RequestRecord;
}

/**
 * What a request can wait for, in addition to its turn in the queue of a pool and the hosts of a pool. Each kind has one line of requests
 * for each name; the comments say what the name is.
 */
export type Topic =
  /** A change of the registered pools, because no pool of this launcher can serve it. The name is empty. */
  | "registry"
  /** Another pool, to which a pool of this launcher yields: by the pool that yields. */
  | "yield"
  /** The start of launches, because as many requests are starting as may: by pool. */
  | "start"
  /** An idle node of a label in a pool: by `labelLine`. */
  | "label"
  /** The limit of its tenant: by tenant. */
  | "tenant"
  /** A new month, because the budget of its tenant is used up: by tenant. */
  | "budget"
  /** An image that is being made: by image. */
  | "image"
  /** An offering or a label that is closed after failures: by the key of its gate. */
  | "gate"
  /** A part of a provider's quota that other users have now: by provider. */
  | "quota"
  /** The result of launches under way, which shows whether a label works: by label. Launches wait here, and no requests. */
  | "launch"
  /** A slot for a node whose record exists already: by provider and label. */
  | "slot";

/** A waiting request, with the amount of its tenant's limit that is reserved for it. */
export type Waiter = Waiting & { readonly need?: Resources };

/** The requests that wait for one thing, in order. A live view: do not keep it across a change. */
export type Line<W = Waiter> = Pick<
  SortedQueue<W>,
  "size" | "at" | "after" | "indexOf" | typeof Symbol.iterator
>;

interface Place<W> {
  readonly topic: Topic;
  readonly name: string;
  readonly line: SortedQueue<W>;
}

/** The line of a name for which nothing waits. */
const nobody: Line<never> = new SortedQueue<never>(() => 0);

/** Name of the line for idle nodes of a label in a pool. */
export function labelLine(pool: string, label: string): string {
  return `${pool} ${label}`;
}

/** Which request waits for what. A request may stand in several lines; leaving all of them costs only as much as it has lines. */
export class Waits<W extends { readonly id: string } = Waiter> {
  /** By topic and name. */
  readonly #lines = new Map<Topic, Map<string, Place<W>>>();
  /** The lines in which each request stands. */
  readonly #byId = new Map<string, Set<Place<W>>>();
  readonly #compare: (a: W, b: W) => number;

  constructor(compare: (a: W, b: W) => number) {
    this.#compare = compare;
  }

  /** Puts it into a line; repeated, it stands there once. */
  join(topic: Topic, name: string, waiter: W): void {
    const places = this.#lines.get(topic) ?? new Map<string, Place<W>>();
    this.#lines.set(topic, places);
    const place = places.get(name) ?? { topic, name, line: new SortedQueue<W>(this.#compare) };
    places.set(name, place);
    place.line.add(waiter);
    const own = this.#byId.get(waiter.id) ?? new Set();
    this.#byId.set(waiter.id, own.add(place));
  }

  /** False when it did not wait for that. */
  leave(topic: Topic, name: string, waiter: W): boolean {
    const place = this.#lines.get(topic)?.get(name);
    return place !== undefined && this.#leave(place, waiter);
  }

  /** Removes it from all lines. */
  leaveAll(waiter: W): void {
    for (const place of this.#byId.get(waiter.id) ?? []) this.#leave(place, waiter);
  }

  has(topic: Topic, name: string, waiter: W): boolean {
    const place = this.#lines.get(topic)?.get(name);
    return place !== undefined && this.#byId.get(waiter.id)?.has(place) === true;
  }

  line(topic: Topic, name: string): Line<W> {
    return this.#lines.get(topic)?.get(name)?.line ?? nobody;
  }

  /** The names of a topic that have a line, so something waits for each. */
  names(topic: Topic): readonly string[] {
    return [...(this.#lines.get(topic)?.keys() ?? [])];
  }

  /** All requests that wait for a topic, over all of its lines. */
  *of(topic: Topic): IterableIterator<W> {
    for (const { line } of this.#lines.get(topic)?.values() ?? []) yield* line;
  }

  /** Number of requests that stand in any line. */
  get size(): number {
    return this.#byId.size;
  }

  #leave(place: Place<W>, waiter: W): boolean {
    const { topic, name, line } = place;
    if (!line.delete(waiter)) return false;
    if (line.size === 0) this.#lines.get(topic)!.delete(name);
    const own = this.#byId.get(waiter.id)!;
    own.delete(place);
    if (own.size === 0) this.#byId.delete(waiter.id);
    return true;
  }
}
