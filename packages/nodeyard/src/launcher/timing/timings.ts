import type { JournalEventName, PastEvent } from "../../telemetry/index.ts";
import { poolKey } from "../../view/index.ts";
import type { Seen } from "./estimate.ts";

/** Kept of each pool and label: what a cloud did last week says little of today. */
const KEPT = 32;
/** Pools with labels that are remembered, at most. */
const REMEMBERED = 10_000;

/** A launch that is longer ago says little of today's cloud, milliseconds. */
const LAUNCH_MS = 86_400_000;
/** The pace of deliveries is of the load at the time, milliseconds. */
const PACE_MS = 600_000;

/** What `recall` reads. */
export const TIMING_EVENTS: readonly JournalEventName[] = ["node.ready", "request.fulfilled"];

/** How long launches took lately, and when requests were delivered. In memory; after a restart read back from the journal. */
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

  /**
   * What a process before this one noted, oldest first, goes before what this one did. `now` is the time by the journal's
   * clock, and tree time that plus `offset`, milliseconds.
   */
  recall(events: readonly PastEvent[], now: number, offset: number): void {
    const before = new Timings();
    for (const { at, event, facts } of events) {
      const { provider, pool, label, ms } = facts;
      const age = now - at;
      if (event === "node.ready" && age <= LAUNCH_MS) {
        if (typeof provider !== "string" || typeof pool !== "string" || typeof label !== "string") continue;
        if (typeof ms === "number" && ms >= 0) before.launched(poolKey(provider, pool), label, ms);
      } else if (event === "request.fulfilled" && age <= PACE_MS && typeof pool === "string")
        before.delivered(pool, at + offset);
    }
    putBefore(this.#launches, before.#launches);
    putBefore(this.#deliveries, before.#deliveries);
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

function putBefore(known: Map<string, number[]>, before: ReadonlyMap<string, readonly number[]>): void {
  for (const [key, values] of before) known.set(key, [...values, ...(known.get(key) ?? [])].slice(-KEPT));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
