import type { Price, Resources } from "@nodeyard/driver";
import { type Random, seededRandom } from "@nodeyard/runtime";
import type { Demand, DemandedRequest, PastNode } from "./demand.ts";

/** Where nothing was recorded, seconds. */
const ASSUMED = { launched: 60, used: 600, deleted: 10 } as const;
type Duration = keyof typeof ASSUMED;

/** A node to be: the pool may be another one than any of the past. */
export interface Place {
  readonly provider: string;
  readonly pool: string;
  readonly label: string;
}

/**
 * Durations of launches, uses and deletions, drawn from recorded ones of the same pool and label where possible. The n-th launch of a
 * label in a pool takes equally long under each configuration, so that differences in the result come from the configuration.
 */
export class Experience {
  /** Sentences about durations that were not recorded, and what is assumed instead. */
  readonly assumed = new Set<string>();
  readonly #demand: Demand;
  readonly #seed: number;
  /** Recorded durations by kind and place, seconds: found once, since each launch asks for them. */
  readonly #known = new Map<string, readonly number[]>();
  /** One random stream for each kind and place: what else is launched does not change its numbers. */
  readonly #streams = new Map<string, Random>();
  /** By node id, seconds. */
  readonly #usedOf: ReadonlyMap<string, number | undefined>;
  /** By provider and label: what the node took that was recorded last. */
  readonly #resources = new Map<string, Resources>();
  /** The same for its price. */
  readonly #prices = new Map<string, Price>();

  constructor(demand: Demand, seed: number) {
    this.#demand = demand;
    this.#seed = seed;
    this.#usedOf = new Map(demand.nodes.map(({ node, used }) => [node, used]));
    for (const { provider, label, resources, cost } of demand.nodes) {
      if (resources !== undefined) this.#resources.set(`${provider} ${label}`, resources);
      if (cost !== undefined)
        this.#prices.set(`${provider} ${label}`, { perHour: cost.per_hour, currency: cost.currency });
    }
  }

  /** Milliseconds. */
  launchMs(place: Place): number {
    return 1000 * this.#draw("launched", place);
  }

  /** Milliseconds, as `launchMs`. */
  deleteMs(place: Place): number {
    return 1000 * this.#draw("deleted", place);
  }

  /** How long a request has its nodes; they are given back together, as a job does. Milliseconds. */
  useMs({ request, labels, nodes = [], used }: DemandedRequest): number {
    const known = used ?? Math.max(-1, ...nodes.map((node) => this.#usedOf.get(node) ?? -1));
    if (known >= 0) return 1000 * known;
    // By its name: the same whatever else is in the demand, and whatever the order of deliveries.
    const of = this.#pastOf("used", { provider: "", pool: "", label: labels[0]! });
    return 1000 * pick(randomOf(request, this.#seed), of);
  }

  /** Undefined: no node of it was recorded. */
  needOf(provider: string, label: string): Resources | undefined {
    const known = this.#resources.get(`${provider} ${label}`);
    if (known !== undefined) return { ...known, instances: 1 };
    return undefined;
  }

  /** What an hour of a node cost; null: that was not recorded. */
  priceOf(provider: string, label: string): Price | null {
    return this.#prices.get(`${provider} ${label}`) ?? null;
  }

  /** What its cloud allows; empty where that was not recorded: then nothing is limited by it. */
  quotaOf(provider: string): Resources {
    return this.#demand.quotas.get(provider) ?? {};
  }

  #draw(what: Duration, place: Place): number {
    const key = `${what} ${place.provider} ${place.pool} ${place.label}`;
    let random = this.#streams.get(key);
    if (random === undefined) {
      random = randomOf(key, this.#seed);
      this.#streams.set(key, random);
    }
    return pick(random, this.#pastOf(what, place));
  }

  /** Durations of the pool and label; else of provider and label, of the label, of the provider, of all nodes; else assumed ones. */
  #pastOf(what: Duration, { provider, pool, label }: Place): readonly number[] {
    const key = `${what} ${provider} ${pool} ${label}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const same: readonly ((node: PastNode) => boolean)[] = [
      (node) => node.provider === provider && node.pool === pool && node.label === label,
      (node) => node.provider === provider && node.label === label,
      (node) => node.label === label,
      (node) => node.provider === provider,
      () => true,
    ];
    const recorded = this.#demand.nodes.filter((node) => node[what] !== undefined);
    // The first rule with any recorded node counts.
    const level = same.findIndex((isSame) => recorded.some(isSame));
    const found = level < 0 ? [ASSUMED[what]] : recorded.filter(same[level]!).map((node) => node[what]!);
    if (level < 0) this.assumed.add(`no node was recorded that was ${what}: ${ASSUMED[what]} s are taken`);
    // Deletions depend on the cloud more than on the label, so those of the same provider are as good.
    else if (level > (what === "deleted" ? 3 : 2))
      this.assumed.add(
        `${label}: no node was recorded that was ${what}: the times of other labels are taken`,
      );
    this.#known.set(key, found);
    return found;
  }
}

/** A stream of its own for each name. */
function randomOf(name: string, seed: number): Random {
  return seededRandom([...name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) >>> 0, seed));
}

/** One of the values, each as likely as the others. */
function pick(random: Random, values: readonly number[]): number {
  return values[Math.floor(random.float() * values.length)]!;
}
