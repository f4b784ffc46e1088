import { type SlotSettings, slotCaches } from "@nodeyard/driver";
import type { SlotPlace } from "@nodeyard/model";
import { compareText, type Moment, StoredTimes } from "@nodeyard/runtime";
import type { BackingFacts, RequestEntry } from "@nodeyard/view";
import { SortedQueues } from "./sorted-queues.ts";
import type { Waiting } from "./waits.ts";

/** A slot that a node is to claim, of a backing node as it was when the slot was chosen: the claim demands that version. */
export interface PlannedSlot extends SlotPlace {
  /** Version of the backing node's record. */
  readonly version: number;
  /** Names of the request's caches that the backing node has. */
  readonly caches: readonly string[];
}

/** A launch that waits for a slot. */
export interface Want {
  readonly node: string;
  readonly provider: string;
  readonly label: string;
}

/** A request whose launches wait: it stands in each line once, at the place that it had when it came. */
interface Asking {
  readonly waiter: Waiting;
  readonly wants: Map<string, Want>;
}

/**
 * Which slots are free, which of them are promised to a request and not claimed yet, and which launches want one. A promise binds this
 * launcher only. The commit that claims the slot decides between launchers; a lost claim comes back as an event.
 */
export class Slots {
  readonly #backings = new Map<string, BackingFacts>();
  /** Backing nodes with an unclaimed slot, by line, oldest first. */
  readonly #open = new SortedQueues(compareText);
  /** Requests by the slot that is promised to them. */
  readonly #promised = new Map<string, string>();
  /** The slots of each request, the same facts the other way round. */
  readonly #promises = new Map<string, Set<string>>();
  /** By request. */
  readonly #asking = new Map<string, Asking>();
  /** Requests by the node that waits. */
  readonly #requestOf = new Map<string, string>();
  /** When backing nodes were launched, by the steady clock: their age must not jump with tree time. */
  readonly #launched = new StoredTimes();
  /** By backing node, as its driver told last. */
  readonly #caches = new Map<string, ReadonlySet<string>>();

  /** Replaces the facts of a backing node. Returns the line that it has a free slot for. */
  set(id: string, after: BackingFacts | undefined): string | undefined {
    const before = this.#backings.get(id);
    if (before !== undefined) this.#open.delete(lineOf(before), id);
    if (after === undefined) {
      this.#backings.delete(id);
      this.#launched.forget(id);
      this.#caches.delete(id);
      return undefined;
    }
    this.#backings.set(id, after);
    // A promise ends when its slot shows as taken: by the request that had it, or by another launcher that was first.
    for (const slot of after.taken) this.lost({ backing: id, slot });
    if (!after.inUse || !after.open || after.ended !== undefined) return undefined;
    if (freeSlots(after, after.slots).length === 0) return undefined;
    const line = lineOf(after);
    this.#open.add(line, id);
    return line;
  }

  /** What a driver saw on a backing node. It decides between free slots only, so that no line has to be looked at again. */
  setCaches(id: string, caches: ReadonlySet<string>): void {
    if (this.#backings.has(id)) this.#caches.set(id, caches);
  }

  /**
   * The lowest free slot of the backing node that has most of the request's caches, of those the oldest that takes any; it is promised to the
   * request. Undefined: every backing node is full, promised, or takes no more. Costs as much as there are open backing nodes before it.
   */
  promise(
    want: Pick<Want, "provider" | "label">,
    settings: SlotSettings,
    moment: Moment,
    { id, record }: Pick<Waiting, "id" | "record">,
  ): PlannedSlot | undefined {
    const caches = slotCaches(settings, want.label, record);
    let best: PlannedSlot | undefined;
    for (const backing of this.#open.of(lineOf(want))) {
      const facts = this.#backings.get(backing)!;
      const age = this.#launched.age(backing, facts.launched * 1000, moment);
      if (closedBecause(facts, settings, age) !== undefined) continue;
      const slot = freeSlots(facts, settings.slots).find(
        (one) => !this.#promised.has(keyOf({ backing, slot: one })),
      );
      if (slot === undefined) continue;
      const has = caches.filter(({ text }) => this.#caches.get(backing)?.has(text)).map(({ name }) => name);
      if (best === undefined || has.length > best.caches.length)
        best = { backing, slot, version: facts.version, caches: has };
      if (has.length === caches.length) break;
    }
    if (best === undefined) return undefined;
    const key = keyOf(best);
    this.#promised.set(key, id);
    this.#promises.set(id, (this.#promises.get(id) ?? new Set()).add(key));
    return best;
  }

  /** Ends the promise of a slot, because another launcher claimed it or the claim failed. Returns the line of its backing node. */
  lost(place: SlotPlace): string | undefined {
    const key = keyOf(place);
    const request = this.#promised.get(key);
    if (request !== undefined) {
      this.#promised.delete(key);
      const all = this.#promises.get(request);
      all?.delete(key);
      if (all?.size === 0) this.#promises.delete(request);
    }
    const facts = this.#backings.get(place.backing);
    return facts && lineOf(facts);
  }

  /** Notes that a launch waits. Returns its request as it stands in lines. */
  want(want: Want, { id, record }: RequestEntry): Waiting {
    const { relativePriority } = record;
    const asking = this.#asking.get(id) ?? { waiter: { id, relativePriority, record }, wants: new Map() };
    this.#asking.set(id, asking);
    asking.wants.set(want.node, want);
    this.#requestOf.set(want.node, id);
    return asking.waiter;
  }

  /** Notes that it waits no longer; undefined: it did not. `last`: nor does any other launch of its request in that line. */
  unwant(
    node: string,
  ): { readonly waiter: Waiting; readonly line: string; readonly last: boolean } | undefined {
    const request = this.#requestOf.get(node);
    if (request === undefined) return undefined;
    const { waiter, wants } = this.#asking.get(request)!;
    const line = lineOf(wants.get(node)!);
    wants.delete(node);
    this.#requestOf.delete(node);
    if (wants.size === 0) this.#asking.delete(request);
    return { waiter, line, last: this.wanted(request, line).length === 0 };
  }

  /** Launches of a request that wait, in one line or in all. */
  wanted(request: string, line?: string): readonly Want[] {
    const wants = [...(this.#asking.get(request)?.wants.values() ?? [])];
    return line === undefined ? wants : wants.filter((want) => lineOf(want) === line);
  }

  /** Promises to a request that is not handled any more. Returns the lines of their backing nodes. */
  forget(request: string): readonly string[] {
    const places = [...(this.#promises.get(request) ?? [])].map(placeOf);
    return places.flatMap((place) => this.lost(place) ?? []);
  }

  /** All promises, by slot, for checks. */
  promised(): ReadonlyMap<string, string> {
    return this.#promised;
  }

  /** All requests of which something is promised or wanted. */
  requests(): readonly string[] {
    return [...new Set([...this.#promises.keys(), ...this.#asking.keys()])];
  }

  /** Unclaimed slots by line, for checks. */
  free(): Readonly<Record<string, readonly string[]>> {
    return Object.fromEntries(
      [...this.#open].map(([line, ids]) => [line, [...ids]]).filter(([, ids]) => ids!.length > 0),
    );
  }
}

/** Why a backing node takes no more slots, though those that it has go on; undefined: it takes some. `age` in milliseconds. */
export function closedBecause(
  { ended, label }: BackingFacts,
  settings: SlotSettings | undefined,
  age: number,
): string | undefined {
  if (ended !== undefined) return ended;
  if (settings === undefined) return `label ${label} is no longer in the configuration`;
  return age > settings.maxAgeMs ? "it is older than max-age" : undefined;
}

/** Unclaimed slots of a backing node, lowest first; at most `offered`, because the label may have fewer slots than when it was made. */
export function freeSlots({ slots, taken }: BackingFacts, offered: number): readonly number[] {
  const all = Array.from({ length: Math.min(slots, offered) }, (_, slot) => slot);
  return all.filter((slot) => !taken.has(slot));
}

/** The line of a provider and label: their slots are alike, and so are the launches that wait for one. */
export function lineOf({ provider, label }: Pick<BackingFacts, "provider" | "label">): string {
  return JSON.stringify([provider, label]);
}

function keyOf({ backing, slot }: SlotPlace): string {
  return `${backing}/${slot}`;
}

function placeOf(key: string): SlotPlace {
  const [backing = "", slot] = key.split("/");
  return { backing, slot: Number(slot) };
}
