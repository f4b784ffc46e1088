import type { Seen } from "./estimate.ts";

/** Kept of each pool and label: what a cloud did last week says little of today. */
const KEPT = 32;
/** Pools with labels that are remembered, at most. */
const REMEMBERED = 10_000;

/** How long launches took lately, and when requests were delivered; in memory, since a restart may change both. */
export class Timings {
  /** Milliseconds, by pool and label. */
  readonly #launches = new Map<string, number[]>();
  /** Tree times, milliseconds, by pool. */
  readonly #deliveries = new Map<string, number[]>();

  launched(pool: string, label: string, ms: number): void {
    note(this.#launches, `${pool} ${label}`, ms);
  }

  delivered(pool: string, at: number): void {
    note(this.#deliveries, pool, at);
  }

  /** For a nodeset, which is there when its slowest node is; a label that was never launched leaves it unknown. */
  seen(pool: string, labels: readonly string[]): Seen {
    const each = [...new Set(labels)].map((label) => this.#launches.get(`${pool} ${label}`) ?? []);
    const unknown = each.some((times) => times.length === 0);
    const slowest = [...each].sort((a, b) => mean(b) - mean(a))[0] ?? [];
    return { launches: unknown ? [] : slowest, deliveries: this.#deliveries.get(pool) ?? [] };
  }
}

function note(known: Map<string, number[]>, key: string, value: number): void {
  if (known.size >= REMEMBERED && !known.has(key)) known.clear();
  const values = known.get(key) ?? [];
  known.set(key, values);
  values.push(value);
  if (values.length > KEPT) values.shift();
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
