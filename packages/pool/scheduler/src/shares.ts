import { clientOf, type NodeRecord, type RequestRecord } from "@nodeyard/model";

/** How much of what there is tenants, and the clients of one tenant, may have while others wait; those that are not named weigh 1. */
export interface ShareWeights {
  readonly tenants: ReadonlyMap<string, number>;
  readonly clients: ReadonlyMap<string, number>;
}

/** Whose share a request or a node counts for; "": none is named. */
export interface Sharer {
  readonly tenant: string;
  readonly client: string;
}

/** What somebody has at present. */
export interface ShareUse {
  /** Nodes, planned launches included. */
  readonly nodes: number;
  readonly weight: number;
}

/** Changes that are kept for queues that look later; a queue that has missed more sorts anew. */
const REMEMBERED = 4_096;

/** A tenant, and a client within a tenant, as keys of sums. The second contains the first. */
export function keysOf({ tenant, client }: Sharer): readonly [string, string] {
  return [tenant, `${tenant}\n${client}`];
}

export function sharerOf({ tenantName, requestor, requestorData }: RequestRecord): Sharer {
  return { tenant: tenantName ?? "", client: clientOf(requestor, requestorData) ?? "" };
}

/**
 * How many nodes tenants and clients have, of all pools and launchers together (docs/design/shares.md). Only kept while the configuration
 * has `shares`.
 */
export class Shares {
  #weights: ShareWeights | undefined;
  readonly #nodes = new Map<string, number>();
  /** By node, or by the name of a planned launch. */
  readonly #held = new Map<string, Sharer>();
  /** Keys whose sums changed, the oldest first; `#forgotten` were there before. */
  #changed: string[] = [];
  #forgotten = 0;

  /** False: requests of one priority are served by age. */
  get on(): boolean {
    return this.#weights !== undefined;
  }

  /** New weights. Everything that is held has to be told anew, and no queue may have anything. */
  configure(weights: ShareWeights | undefined): void {
    this.#weights = weights;
    this.#held.clear();
    this.#nodes.clear();
  }

  /** One node, or planned launch, counts for somebody; undefined: for nobody. */
  set(holder: string, sharer: Sharer | undefined): void {
    if (!this.on) return;
    const before = this.#held.get(holder);
    if (before?.tenant === sharer?.tenant && before?.client === sharer?.client) return;
    if (before !== undefined) this.#count(before, -1);
    if (sharer === undefined) this.#held.delete(holder);
    else {
      this.#held.set(holder, sharer);
      this.#count(sharer, 1);
    }
  }

  /** A node counts for the request that it is allocated to, as for its tenant's limit. */
  setNode(holder: string, record: NodeRecord | undefined): void {
    if (!this.on) return;
    if (record === undefined || record.allocatedTo === null) return this.set(holder, undefined);
    const { tenantName, requestor, userData } = record;
    this.set(holder, { tenant: tenantName ?? "", client: clientOf(requestor, userData) ?? "" });
  }

  /** Of a tenant, and of a client within its tenant. */
  useOf(sharer: Sharer): { readonly tenant: ShareUse; readonly client: ShareUse } {
    const [tenant, client] = keysOf(sharer);
    return { tenant: this.#use(tenant), client: this.#use(client) };
  }

  /** Nodes by weight, by a key of `keysOf`: the smaller it is, the sooner it is somebody's turn. */
  load(key: string): number {
    const { nodes, weight } = this.#use(key);
    return nodes / weight;
  }

  /** Those first whose turn is first at present; by nothing else. */
  inOrder<T extends { readonly record: RequestRecord }>(requests: readonly T[]): readonly T[] {
    if (!this.on) return requests;
    const loads = new Map(
      requests.map((each) => [each, keysOf(sharerOf(each.record)).map((key) => this.load(key))]),
    );
    return requests.toSorted((a, b) => {
      const [[tenantA, clientA], [tenantB, clientB]] = [loads.get(a)!, loads.get(b)!];
      return tenantA! - tenantB! || clientA! - clientB!;
    });
  }

  /** For `changedSince`. */
  get moment(): number {
    return this.#forgotten + this.#changed.length;
  }

  /** Keys whose sums have changed; undefined: too many to know. */
  changedSince(moment: number): readonly string[] | undefined {
    return moment < this.#forgotten ? undefined : this.#changed.slice(moment - this.#forgotten);
  }

  #use(key: string): ShareUse {
    const end = key.indexOf("\n");
    const weights = end < 0 ? this.#weights?.tenants : this.#weights?.clients;
    return { nodes: this.#nodes.get(key) ?? 0, weight: weights?.get(key.slice(end + 1)) ?? 1 };
  }

  #count(sharer: Sharer, change: 1 | -1): void {
    for (const key of keysOf(sharer)) {
      const nodes = (this.#nodes.get(key) ?? 0) + change;
      if (nodes === 0) this.#nodes.delete(key);
      else this.#nodes.set(key, nodes);
      this.#changed.push(key);
    }
    if (this.#changed.length <= 2 * REMEMBERED) return;
    this.#changed = this.#changed.slice(REMEMBERED);
    this.#forgotten += REMEMBERED;
  }
}
