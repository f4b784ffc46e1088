import type { NodeRecord } from "@nodeyard/model";
import { Inventory } from "./inventory.ts";

/** The fields of a request that are used here. */
interface Wanting {
  readonly id: string;
  readonly record: { readonly nodeTypes: readonly string[] };
}

interface Host {
  /** Its labels as one text: hosts with the same labels are alike. */
  readonly kind: string;
  readonly labels: readonly string[];
  /** Its node records: none while it registers again after a use, two for a moment when the deletion of the old one is seen later. */
  readonly nodes: Set<string>;
}

/** Requests that want the same labels. */
interface Demand<T> {
  readonly labels: readonly string[];
  readonly requests: Map<string, T>;
  /** Whether all registered hosts together would do, as of the last change of hosts. */
  enough: boolean;
}

/**
 * The hosts of a pool, idle or not. A request that wants more hosts than are registered keeps none: they would stay idle until somebody
 * repairs another host.
 */
export class Hosts<T extends Wanting> {
  /** By `hostKey`. */
  readonly #hosts = new Map<string, Host>();
  /** The host of each node record. */
  readonly #keys = new Map<string, string>();
  /** How many hosts there are of each set of labels. */
  readonly #kinds = new Map<string, { readonly labels: readonly string[]; count: number }>();
  /** By the wanted labels, whatever their order. */
  readonly #demands = new Map<string, Demand<T>>();

  /** A host is registered. Returns the requests for which there are enough hosts now, or no longer. */
  set(node: string, record: NodeRecord): readonly T[] {
    const key = hostKey(node, record);
    const labels = [...new Set(record.type)].sort();
    const kind = labels.join("\n");
    this.#keys.set(node, key);
    const known = this.#hosts.get(key);
    known?.nodes.add(node);
    if (known?.kind === kind) return [];
    this.#hosts.set(key, { kind, labels, nodes: known?.nodes ?? new Set([node]) });
    if (known !== undefined) this.#count(known, -1);
    this.#count({ kind, labels }, 1);
    return this.#review();
  }

  /** A record went. Returns the key of its host if that has no other record. */
  remove(node: string): string | undefined {
    const key = this.#keys.get(node);
    this.#keys.delete(node);
    const host = this.#hosts.get(key ?? "");
    host?.nodes.delete(node);
    return host?.nodes.size === 0 ? key : undefined;
  }

  /** Gives up a host that still has no record. Returns the requests for which there are no longer enough hosts. */
  lapse(key: string): readonly T[] {
    const host = this.#hosts.get(key);
    if (host === undefined || host.nodes.size > 0) return [];
    this.#hosts.delete(key);
    this.#count(host, -1);
    return this.#review();
  }

  /** Whether all hosts together would be enough for a nodeset. */
  doFor(nodeTypes: readonly string[]): boolean {
    return this.#demands.get(demandKey(nodeTypes))?.enough ?? this.#isEnough(nodeTypes);
  }

  /** The same for a request, which is remembered until `forget`. */
  enoughFor(waiting: T): boolean {
    const { nodeTypes: labels } = waiting.record;
    const key = demandKey(labels);
    const demand = this.#demands.get(key) ?? {
      labels,
      requests: new Map<string, T>(),
      enough: this.#isEnough(labels),
    };
    this.#demands.set(key, demand);
    demand.requests.set(waiting.id, waiting);
    return demand.enough;
  }

  /** The request waits here no longer. */
  forget({ id, record }: T): void {
    if (this.#demands.size === 0) return;
    const key = demandKey(record.nodeTypes);
    const demand = this.#demands.get(key);
    demand?.requests.delete(id);
    if (demand?.requests.size === 0) this.#demands.delete(key);
  }

  #count({ kind, labels }: Pick<Host, "kind" | "labels">, change: 1 | -1): void {
    const count = (this.#kinds.get(kind)?.count ?? 0) + change;
    if (count === 0) this.#kinds.delete(kind);
    else this.#kinds.set(kind, { labels, count });
  }

  /** The cost grows with the number of different sets of labels, not with that of requests. */
  #review(): readonly T[] {
    const changed: T[] = [];
    for (const demand of this.#demands.values()) {
      const enough = this.#isEnough(demand.labels);
      if (enough === demand.enough) continue;
      demand.enough = enough;
      changed.push(...demand.requests.values());
    }
    return changed;
  }

  #isEnough(wanted: readonly string[]): boolean {
    // The matching of `Inventory` decides, on an empty one with one request. More hosts of a kind than the nodeset has labels cannot help.
    const all = new Inventory<Wanting>(() => 0);
    for (const [kind, { labels, count }] of this.#kinds) {
      if (!labels.some((label) => wanted.includes(label))) continue;
      for (let number = 0; number < Math.min(count, wanted.length); number++)
        all.add(`${number} ${kind}`, labels);
    }
    all.join({ id: "", record: { nodeTypes: wanted } });
    return all.whole("") !== undefined;
  }
}

function demandKey(labels: readonly string[]): string {
  return [...labels].sort().join("\n");
}

/** The identity of a host, which a new registration keeps (for a static node: address, port, user and slot). */
function hostKey(node: string, { hostname, username, connectionPort, slot }: NodeRecord): string {
  return hostname === null ? node : JSON.stringify([hostname, username, connectionPort, slot]);
}

/** Milliseconds after which a host that has not registered again counts as broken. A used host registers again within seconds. */
export const HOST_BACK_MS = 300_000;
