import { nodeStates, priceOf, requestStates } from "@nodeyard/model";
import type { ComponentEntry, NodeEntry, RequestEntry, View, ViewEvent } from "@nodeyard/view";
import { type Gauge, gaugeOf } from "./gauges.ts";

/** How many nodes there are by state, and requests that are not answered yet: these by label, too, as the state "waiting". */
export interface Counts {
  /** By state; states without a node are absent. */
  readonly nodes: Readonly<Record<string, number>>;
  /** Requests that are `requested` or `pending`. */
  readonly waiting: number;
  /** By label, then by state or "waiting". A node with several labels counts for each. */
  readonly labels: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** By provider, then by state of its nodes. */
  readonly providers: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

const WAITING = "waiting";
/** Prices are summed as whole millionths of the currency: sums of fractions would not come back to zero when the nodes are gone. */
const MILLION = 1_000_000;
const costNames = ["provider_cost_per_hour", "label_cost_per_hour", "tenant_cost_per_hour"] as const;

/** The key of a Tally that has only one. */
const ALL = "";
const POOL = "pool";

/** Requests that want the same labels, whatever their order and number. */
interface LabelSet {
  readonly labels: readonly string[];
  count: number;
}

/**
 * Counts of the tree's nodes and requests (docs/contract/operations.md, "Figures of the whole"), updated by each event at the cost of
 * its change. Providers and labels of registered pools are included with zeros, and so are all others that nodes name.
 */
export class Population {
  readonly #view: View;
  /** By state, under ALL. */
  readonly #nodes = new Tally();
  /** By provider, then by state; `#byLabel` likewise. */
  readonly #byProvider = new Tally();
  readonly #byLabel = new Tally();
  /** What nodes cost by provider, label and tenant, in millionths: whole numbers come back to zero. */
  readonly #costs = {
    provider_cost_per_hour: new Tally(),
    label_cost_per_hour: new Tally(),
    tenant_cost_per_hour: new Tally(),
  };
  /** By state, under ALL. */
  readonly #requests = new Tally();
  /** Requests that are not answered yet, by label. */
  readonly #waiting = new Tally();
  /** Requests by their wanted labels: few different lists, even of many requests. */
  readonly #wanted = new Map<string, LabelSet>();
  readonly #unfollow: () => void;

  /** `onChange` is called for whatever may change a figure. */
  constructor(view: View, onChange: () => void = () => {}) {
    this.#view = view;
    for (const node of view.nodes.byId.values()) this.#node(node, 1);
    for (const request of view.requests.byId.values()) this.#request(request, 1);
    this.#unfollow = view.onEvent((event) => {
      if (this.#take(event)) onChange();
    });
  }

  /** Counts no longer; the figures stay as they are. */
  close(): void {
    this.#unfollow();
  }

  /** The current counts, without zeros. */
  counts(): Counts {
    return {
      nodes: this.#nodes.row(ALL),
      waiting: this.#requests.get(ALL, "requested") + this.#requests.get(ALL, "pending"),
      labels: rowsOf(this.#byLabel, this.#waiting),
      providers: rowsOf(this.#byProvider),
    };
  }

  /** Every gauge of the tree as a whole; costs as much as there are providers, labels and pools, not nodes. */
  gauges(): readonly Gauge[] {
    const pools = [...this.#view.components.values()].filter(({ kind }) => kind === POOL);
    const providers = new Set([...providersOf(pools), ...this.#byProvider.firsts()]);
    const labels = new Set([
      ...pools.flatMap(({ record }) => record.supportedLabels),
      ...this.#byLabel.firsts(),
    ]);
    return [
      ...nodeStates.map((state) => gaugeOf("nodes", this.#nodes.get(ALL, state), state)),
      ...requestStates.map((state) => gaugeOf("requests", this.#requests.get(ALL, state), state)),
      ...statesOf("provider_nodes", providers, this.#byProvider),
      ...statesOf("label_nodes", labels, this.#byLabel),
      ...costNames.flatMap((name) =>
        [...this.#costs[name].entries()].map(([of, currency, millionths]) =>
          gaugeOf(name, millionths / MILLION, of, currency),
        ),
      ),
      ...this.#addressable(pools),
    ];
  }

  /** Pools of the same name on several launchers are one, and have what any of them has. */
  #addressable(pools: readonly ComponentEntry[]): readonly Gauge[] {
    const offered = new Map<
      string,
      { readonly provider: string; readonly pool: string; readonly labels: Set<string> }
    >();
    for (const { record } of pools) {
      const [provider, pool] = [record.providerName ?? "", record.name ?? ""];
      const key = JSON.stringify([provider, pool]);
      const known = offered.get(key) ?? { provider, pool, labels: new Set() };
      for (const label of record.supportedLabels) known.labels.add(label);
      offered.set(key, known);
    }
    return [...offered.values()].map(({ provider, pool, labels }) => {
      let count = 0;
      for (const wanted of this.#wanted.values())
        if (wanted.labels.every((label) => labels.has(label))) count += wanted.count;
      return gaugeOf("pool_addressable_requests", count, provider, pool);
    });
  }

  /** Whether a figure may have changed. */
  #take(event: ViewEvent): boolean {
    switch (event.type) {
      case "node":
        // A lock says nothing here: most events of nodes are of locks.
        if (event.before?.record === event.after?.record) return false;
        this.#node(event.before, -1);
        this.#node(event.after, 1);
        return true;
      case "request":
        this.#request(event.before, -1);
        this.#request(event.after, 1);
        return true;
      case "component":
        return (event.after ?? event.before)?.kind === POOL;
      default:
        return false;
    }
  }

  /** Adds a node to all sums, or takes it out of them: by the same record both times, so that nothing is left. */
  #node(entry: NodeEntry | undefined, by: 1 | -1): void {
    if (entry === undefined) return;
    const { state, provider, type } = entry.record;
    this.#nodes.add(ALL, state, by);
    if (provider !== null) this.#byProvider.add(provider, state, by);
    for (const label of distinct(type)) this.#byLabel.add(label, state, by);
    const price = priceOf(entry.record);
    if (price === undefined) return;
    const { allocatedTo, tenantName } = entry.record;
    const cost = by * Math.round(price.perHour * MILLION);
    const [providers, labels, tenants] = costNames.map((name) => this.#costs[name]);
    // A slot takes its part over from the labels of its backing node, whose provider is paid: so the sums are what is paid.
    if (price.partOf === undefined && provider !== null) providers!.add(provider, price.currency, cost);
    for (const label of distinct(type)) labels!.add(label, price.currency, cost);
    for (const label of distinct(price.partOf ?? [])) labels!.add(label, price.currency, -cost);
    // A deallocated node keeps the name of its last tenant in its record.
    if (allocatedTo !== null && tenantName !== null) tenants!.add(tenantName, price.currency, cost);
  }

  /** The same for a request. */
  #request(entry: RequestEntry | undefined, by: 1 | -1): void {
    if (entry === undefined) return;
    const { state, nodeTypes } = entry.record;
    this.#requests.add(ALL, state, by);
    const labels = [...distinct(nodeTypes)].sort();
    if (state === "requested" || state === "pending")
      for (const label of labels) this.#waiting.add(label, WAITING, by);
    const key = JSON.stringify(labels);
    const wanted = this.#wanted.get(key) ?? { labels, count: 0 };
    wanted.count += by;
    if (wanted.count === 0) this.#wanted.delete(key);
    else this.#wanted.set(key, wanted);
  }
}

/** Most nodes have one label, and every change of a node asks: that costs no set. */
function distinct(labels: readonly string[]): Iterable<string> {
  return labels.length < 2 ? labels : new Set(labels);
}

/** Providers that registered pools belong to, whether they have nodes or not. */
function providersOf(pools: readonly ComponentEntry[]): readonly string[] {
  return pools.map(({ record }) => record.providerName).filter((name) => name !== null);
}

/** A gauge for each state of each key, with zeros, so that no series ends when its last node goes. */
function statesOf(
  name: "provider_nodes" | "label_nodes",
  keys: Iterable<string>,
  tally: Tally,
): readonly Gauge[] {
  return [...keys].flatMap((key) =>
    nodeStates.map((state) => gaugeOf(name, tally.get(key, state), key, state)),
  );
}

/** By first key, what any of them has under it. */
function rowsOf(...tallies: readonly Tally[]): Counts["labels"] {
  const firsts = new Set(tallies.flatMap((tally) => [...tally.firsts()]));
  return Object.fromEntries(
    [...firsts].map((first) => [first, Object.assign({}, ...tallies.map((tally) => tally.row(first)))]),
  );
}

/** Counts by two keys; entries that reach zero are removed. */
class Tally {
  readonly #counts = new Map<string, Map<string, number>>();

  /** Adds `by`, which may be negative. Costs the same however many entries there are. */
  add(first: string, second: string, by: number): void {
    const row = this.#counts.get(first) ?? new Map<string, number>();
    const count = (row.get(second) ?? 0) + by;
    if (count === 0) row.delete(second);
    else row.set(second, count);
    if (row.size === 0) this.#counts.delete(first);
    else this.#counts.set(first, row);
  }

  /** 0 where there is none. */
  get(first: string, second: string): number {
    return this.#counts.get(first)?.get(second) ?? 0;
  }

  /** The counts under a first key, by the second. */
  row(first: string): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts.get(first) ?? []);
  }

  /** First keys with a count other than zero. */
  firsts(): Iterable<string> {
    return this.#counts.keys();
  }

  /** All counts, in no particular order. */
  *entries(): Generator<readonly [first: string, second: string, count: number]> {
    for (const [first, row] of this.#counts) for (const [second, count] of row) yield [first, second, count];
  }
}
