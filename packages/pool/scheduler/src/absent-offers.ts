import type { OpeningPool, RegisteredPool } from "./types.ts";

/**
 * How long a request waits for an offer that is not registered, milliseconds: enough for a launcher's restart, a host's reboot, and a
 * cloud that answers late (docs/contract/launcher.md, "Offers that are not there yet").
 */
export const OFFER_GRACE_MS = 300_000;

/** Why a request that no registered pool can serve has not failed yet. */
export interface AwaitedOffer {
  /** The provider that may serve it; absent: not known, because the request is older than this launcher's picture of the registry. */
  readonly provider?: string;
  /** Steady milliseconds at which the wait ends. */
  readonly until: number;
}

interface Absent {
  readonly provider: string;
  readonly labels: ReadonlySet<string>;
  /** Of a pool that left: a request that it declined does not wait for its return. */
  readonly id?: string;
  readonly until: number;
}

/**
 * Offers that no registered pool makes now, and that may soon be made: by pools that left the registry minutes ago, by providers of this
 * launcher that are being opened, and, for requests that were there before this launcher, by pools that it has never seen.
 */
export class AbsentOffers {
  /** By the key of the component. */
  readonly #left = new Map<string, Absent>();
  /** By `<provider>/<pool>`. */
  readonly #opening = new Map<string, Absent>();
  #found: { readonly requests: ReadonlySet<string>; readonly until: number } | undefined;

  /** A pool offered these labels until now. */
  left(key: string, { id, provider, labels }: RegisteredPool, steady: number): void {
    for (const [known, { until }] of this.#left) if (until <= steady) this.#left.delete(known);
    this.#left.set(key, { id, provider, labels, until: steady + OFFER_GRACE_MS });
  }

  /** Pools of this launcher whose providers are not open. The grace of each runs from the first call that has it. */
  opening(pools: readonly OpeningPool[], steady: number): void {
    const keys = new Set(pools.map(({ key }) => key));
    for (const key of this.#opening.keys()) if (!keys.has(key)) this.#opening.delete(key);
    for (const { key, provider, labels } of pools) {
      const until = this.#opening.get(key)?.until ?? steady + OFFER_GRACE_MS;
      this.#opening.set(key, { provider, labels, until });
    }
  }

  /** Requests that this launcher found when it first saw the whole tree. Later calls change nothing. */
  found(requests: Iterable<string>, steady: number): void {
    this.#found ??= { requests: new Set(requests), until: steady + OFFER_GRACE_MS };
  }

  /** What the request waits for the longest; `offering`: registered pools that offer all of its labels, whether or not they declined. */
  awaited(
    request: string,
    labels: readonly string[],
    declinedBy: readonly string[],
    offering: readonly RegisteredPool[],
    steady: number,
  ): AwaitedOffer | undefined {
    let longest: AwaitedOffer | undefined;
    for (const { id, provider, labels: offered, until } of [
      ...this.#opening.values(),
      ...this.#left.values(),
    ]) {
      if (until <= steady || until <= (longest?.until ?? 0)) continue;
      if (id !== undefined && declinedBy.includes(id)) continue;
      // A pool of the provider is back, or another launcher serves it, too: its word counts.
      if (offering.some((pool) => pool.provider === provider)) continue;
      if (labels.every((label) => offered.has(label))) longest = { provider, until };
    }
    if (longest !== undefined || offering.length > 0) return longest;
    const found = this.#found;
    return found !== undefined && found.until > steady && found.requests.has(request)
      ? { until: found.until }
      : undefined;
  }
}
