import { compareText } from "@nodeyard/runtime";
import { SortedQueues } from "./sorted-queues.ts";

/** The fields of a request that are used here. */
interface Wanting {
  readonly id: string;
  readonly record: { readonly nodeTypes: readonly string[] };
}

/** One wanted host of a request. */
interface Want<T> {
  readonly owner: Waiter<T>;
  /** Place of the label in the nodeset: of a request's wants the first is filled first. */
  readonly index: number;
  readonly label: string;
  /** The host that is kept for it; undefined: it stands in the line of its label. */
  host: string | undefined;
}

/** A request that waits for hosts, with those that are kept for it. */
interface Waiter<T> {
  readonly waiting: T;
  readonly wants: readonly Want<T>[];
}

/** Each label that the search reached, with the label from which it was reached; undefined for the first. */
type Paths = Map<string, string | undefined>;

/**
 * Which idle hosts of a pool are kept for which of the requests that wait for them. The first in order keeps every host that
 * it can use; the second keeps hosts that the first cannot use, and so on. So no host stays idle while a request lacks it, and
 * no two requests wait for each other's hosts: the later one gives up its hosts to the earlier one.
 *
 * A host may have several labels. Requests exchange hosts when one of them can use another host instead. The result is the maximum
 * matching of hosts and wanted labels that is best for the first request, then for the second, and so on, independent of the order in
 * which hosts and requests arrived. A search walks over labels, not over hosts or requests, so its cost does not grow with the queue.
 */
export class Inventory<T extends Wanting> {
  /** Labels of each idle host. */
  readonly #hosts = new Map<string, readonly string[]>();
  /** Idle hosts that are kept for no request, by label. */
  readonly #free = new SortedQueues(compareText);
  readonly #waiters = new Map<string, Waiter<T>>();
  /** What each kept host is kept for. */
  readonly #kept = new Map<string, Want<T>>();
  /** Wants that have a host, by label. The want of the last request is last, because it is the first to give its host up. */
  readonly #filled: SortedQueues<Want<T>>;
  /** Requests that lack a host of a label. */
  readonly #lines: SortedQueues<Waiter<T>>;
  /** Hosts that have the first label but are kept for a want of the second label: they can be exchanged. */
  readonly #spare = new Map<string, Map<string, Set<string>>>();
  readonly #compare: (a: T, b: T) => number;
  readonly #compareOwners = (a: Waiter<T>, b: Waiter<T>) => this.#compare(a.waiting, b.waiting);
  readonly #compareWants = (a: Want<T>, b: Want<T>) =>
    this.#compareOwners(a.owner, b.owner) || a.index - b.index;

  /** `compare` is the order of requests; it never returns 0 for two of them. */
  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
    this.#filled = new SortedQueues(this.#compareWants);
    this.#lines = new SortedQueues(this.#compareOwners);
  }

  /** Requests that wait for hosts here. */
  get size(): number {
    return this.#waiters.size;
  }

  has(request: string): boolean {
    return this.#waiters.has(request);
  }

  /** Hosts of the whole nodeset in the order of its labels; undefined when one is missing. */
  whole(request: string): readonly string[] | undefined {
    const hosts = this.#waiters.get(request)?.wants.map(({ host }) => host);
    return hosts?.every((host) => host !== undefined) ? hosts : undefined;
  }

  /** Hosts that are kept for a request, which may be fewer than it wants; empty for one that does not wait here. */
  keptFor(request: string): readonly string[] {
    const wants = this.#waiters.get(request)?.wants ?? [];
    return wants.flatMap(({ host }) => (host === undefined ? [] : [host]));
  }

  /** Requests for which hosts are kept. */
  keepers(): ReadonlySet<T> {
    return new Set([...this.#kept.values()].map(({ owner }) => owner.waiting));
  }

  /** The first label for which the request has no host, and its place in the line for that label, from 1; undefined: it has all hosts. */
  placeOf(
    request: string,
  ): { readonly label: string; readonly place: number; readonly of: number } | undefined {
    const waiter = this.#waiters.get(request);
    const label = waiter?.wants.find(({ host }) => host === undefined)?.label;
    if (waiter === undefined || label === undefined) return undefined;
    const line = this.#lines.of(label);
    return { label, place: line.indexOf(waiter) + 1, of: line.size };
  }

  /** Free hosts for these labels, without exchanges; undefined when one is missing. Changes nothing. */
  freeFor(labels: readonly string[]): readonly string[] | undefined {
    const taken = new Set<string>();
    for (const label of labels) {
      const host = this.#free.of(label).find((id) => !taken.has(id));
      if (host === undefined) return undefined;
      taken.add(host);
    }
    return [...taken];
  }

  /** A host became idle. Returns the request that has one host more now. */
  add(host: string, labels: readonly string[]): T | undefined {
    // Known already: an idle host may be reported more than once.
    if (this.#hosts.has(host)) return undefined;
    this.#hosts.set(host, [...new Set(labels)]);
    return this.#give(host);
  }

  /** A host is no longer idle. The request that it was kept for gets another one, if necessary from a later request. */
  remove(host: string): void {
    const want = this.#kept.get(host);
    if (want === undefined) this.#unfree(host);
    else this.#unbind(want);
    this.#hosts.delete(host);
    if (want !== undefined) this.#fill(want);
  }

  /** Adds a request to the line. It keeps the hosts that it can use, and takes them from later requests if necessary. */
  join(waiting: T): void {
    if (this.#waiters.has(waiting.id)) return;
    const wants: Want<T>[] = [];
    const owner: Waiter<T> = { waiting, wants };
    this.#waiters.set(waiting.id, owner);
    for (const [index, label] of waiting.record.nodeTypes.entries())
      wants.push({ owner, index, label, host: undefined });
    for (const want of wants) this.#fill(want);
  }

  /** Gives a request these hosts, which are kept for it or free. They leave the inventory. */
  take(request: string, hosts: readonly string[]): void {
    const waiter = this.#waiters.get(request);
    this.#waiters.delete(request);
    if (waiter !== undefined) this.#withdraw(waiter);
    for (const host of hosts) {
      this.#unfree(host);
      this.#hosts.delete(host);
    }
  }

  /** Removes a request. Returns the requests that got one of its hosts. */
  leave(request: string): readonly T[] {
    const waiter = this.#waiters.get(request);
    if (waiter === undefined) return [];
    this.#waiters.delete(request);
    const hosts = this.#withdraw(waiter);
    return hosts.map((host) => this.#give(host)).filter((waiting) => waiting !== undefined);
  }

  /** Removes a request from all lines. The returned hosts are neither free nor kept until the caller passes them on. */
  #withdraw({ wants }: Waiter<T>): readonly string[] {
    const hosts = wants.flatMap(({ host }) => (host === undefined ? [] : [host]));
    for (const want of wants) if (want.host !== undefined) this.#unbind(want);
    for (const want of wants) this.#lines.delete(want.label, want.owner);
    return hosts;
  }

  /** Gives a host to the first request that can use it, or makes it free. */
  #give(host: string): T | undefined {
    this.#setFree(host);
    // The host is free while the search runs, so that a chain of exchanges may begin with it.
    const first = this.#firstFor(host);
    if (first === undefined) return undefined;
    this.#fill(first);
    return first.owner.waiting;
  }

  /** The first want, in the order of requests, that this host can fill: directly, or by exchanges with kept hosts. */
  #firstFor(host: string): Want<T> | undefined {
    if (this.#lines.size === 0) return undefined;
    const reached = new Set(this.#hosts.get(host));
    for (const label of reached)
      for (const [other, filling] of this.#spare) if (filling.has(label)) reached.add(other);
    let best: { readonly owner: Waiter<T>; readonly label: string } | undefined;
    for (const label of reached) {
      const owner = this.#lines.of(label).at(0);
      if (owner !== undefined && (best === undefined || this.#compareOwners(owner, best.owner) < 0))
        best = { owner, label };
    }
    return best?.owner.wants.find((want) => want.host === undefined && want.label === best.label);
  }

  /**
   * Finds a host for a want: a free one, else the one of the last request behind this one. Without either the request joins the line.
   * A breadth-first search over labels, so the shortest chain of exchanges is found first.
   */
  #fill(want: Want<T>): void {
    const paths: Paths = new Map([[want.label, undefined]]);
    let last: Want<T> | undefined;
    for (const label of paths.keys()) {
      const free = this.#free.of(label).at(0);
      if (free !== undefined) return this.#pass(free, label, paths, want);
      const filled = this.#filled.of(label).last();
      if (filled !== undefined && this.#compareWants(filled, last ?? want) > 0) last = filled;
      for (const next of this.#spare.get(label)?.keys() ?? []) if (!paths.has(next)) paths.set(next, label);
    }
    // To take a host from the same request's later label would only exchange one missing host for another.
    if (last === undefined || last.owner === want.owner) {
      this.#lines.add(want.label, want.owner);
      return;
    }
    const host = last.host!;
    this.#unbind(last);
    this.#lines.add(last.label, last.owner);
    this.#setFree(host);
    this.#pass(host, last.label, paths, want);
  }

  /** Keeps a free host for a want. If the host does not have the wanted label, hosts are exchanged along the path of the search. */
  #pass(free: string, from: string, paths: Paths, want: Want<T>): void {
    let host = free;
    this.#unfree(host);
    for (
      let label = from, next = paths.get(label);
      next !== undefined;
      label = next, next = paths.get(label)
    ) {
      if (this.#hosts.get(host)!.includes(next)) continue;
      const [other] = this.#spare.get(next)!.get(label)!;
      const exchanged = this.#kept.get(other!)!;
      this.#unbind(exchanged);
      this.#bind(host, exchanged);
      host = other!;
    }
    this.#bind(host, want);
    const lacks = want.owner.wants.some((each) => each.host === undefined && each.label === want.label);
    if (!lacks) this.#lines.delete(want.label, want.owner);
  }

  /** Keeps a host, which must not be free, for a want that has none. */
  #bind(host: string, want: Want<T>): void {
    want.host = host;
    this.#kept.set(host, want);
    this.#filled.add(want.label, want);
    for (const label of this.#hosts.get(host)!) {
      if (label === want.label) continue;
      const filling = this.#spare.get(label) ?? new Map<string, Set<string>>();
      this.#spare.set(label, filling);
      filling.set(want.label, (filling.get(want.label) ?? new Set()).add(host));
    }
  }

  /** The host of a want is kept for it no longer. It is not free either: the caller says what becomes of it. */
  #unbind(want: Want<T>): void {
    const host = want.host!;
    want.host = undefined;
    this.#kept.delete(host);
    this.#filled.delete(want.label, want);
    for (const label of this.#hosts.get(host)!) {
      const filling = this.#spare.get(label);
      const hosts = filling?.get(want.label);
      hosts?.delete(host);
      if (hosts?.size === 0) filling!.delete(want.label);
      if (filling?.size === 0) this.#spare.delete(label);
    }
  }

  #setFree(host: string): void {
    for (const label of this.#hosts.get(host)!) this.#free.add(label, host);
  }

  #unfree(host: string): void {
    for (const label of this.#hosts.get(host) ?? []) this.#free.delete(label, host);
  }
}
