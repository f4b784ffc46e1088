import type { Standing } from "../scheduler/index.ts";
import type { JournalEventName, PastEvent } from "../telemetry/index.ts";
import { poolKey } from "../view/index.ts";

/** How long until a request has its nodes, as far as what was seen lately tells. */
export interface Estimate {
  /** From now, milliseconds: about half take less than the first, nine of ten less than the second. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly sure: "well" | "roughly" | "guess";
  /** Launches and deliveries that it rests on. */
  readonly launches: number;
  readonly deliveries: number;
}

/** What a launcher saw lately in one pool. */
export interface Seen {
  /** Durations of launches of the slowest of the labels, milliseconds, in no order. */
  readonly launches: readonly number[];
  /** Tree times, milliseconds, at which requests were delivered, oldest first. */
  readonly deliveries: readonly number[];
}

/** Samples from which a figure is no guess any more, and from which it is good. */
const FEW = 3;
const MANY = 10;

/** Waiting that ends at a time that is known; launching comes after it. */
const TIMED: ReadonlySet<string> = new Set([
  "offering.failing",
  "offering.budget",
  "capacity.refused",
  "yield.provider",
  "yield.priority",
  "retry.later",
]);

/** Waiting that ends when those in front have what they want and others leave: the pace of deliveries tells. */
const PACED: ReadonlySet<string> = new Set([
  "queue.behind",
  "queue.starting",
  "capacity.pool",
  "capacity.provider",
  "capacity.concurrency",
  "capacity.reserved",
  "nodes.none-free",
]);

/** Undefined: nothing that was seen tells. A pool that needs no launch is asked with no launches needed. */
export function estimate(
  standing: Pick<Standing, "outlook" | "code" | "since" | "nextTry" | "position" | "waiting"> & {
    /** False: what it gives is there already (static hosts, a ready node). */
    readonly launches: boolean;
  },
  seen: Seen,
  now: number,
): Estimate | undefined {
  const { code, outlook } = standing;
  const making = standing.launches ? launchTime(seen.launches) : { half: 0, most: 0, samples: MANY };
  if (outlook === "serves") {
    const elapsed = standing.since === null ? 0 : Math.max(0, now - standing.since);
    return standing.launches ? remaining(seen.launches, elapsed) : soon();
  }
  if (outlook === "can" || code === "queue.next")
    return making && tell(making.half, making.most, making.samples, seen, standing.launches);
  if (TIMED.has(code)) {
    if (standing.nextTry === null || making === undefined) return undefined;
    const pause = Math.max(0, standing.nextTry - now);
    // Whether the next try works is not known.
    return { ...tell(pause + making.half, pause + making.most, 0, seen, standing.launches), sure: "guess" };
  }
  if (!PACED.has(code) || making === undefined) return undefined;
  const pace = paceOf(seen.deliveries, now);
  if (pace === undefined) return undefined;
  const turns = standing.position ?? standing.waiting + 1;
  const samples = Math.min(making.samples, seen.deliveries.length);
  // Deliveries are a flow that others drive: twice the mean is what nine of ten single gaps stay within, about.
  const told = tell(turns * pace + making.half, 2 * turns * pace + making.most, samples, seen, true);
  return told.sure === "well" ? { ...told, sure: "roughly" } : told;
}

function soon(): Estimate {
  return { fromMs: 0, toMs: 1_000, sure: "roughly", launches: 0, deliveries: 0 };
}

function tell(from: number, to: number, samples: number, seen: Seen, launches: boolean): Estimate {
  return {
    fromMs: Math.round(from),
    toMs: Math.round(Math.max(from, to)),
    sure: samples >= MANY ? "well" : samples >= FEW ? "roughly" : "guess",
    launches: launches ? seen.launches.length : 0,
    deliveries: seen.deliveries.length,
  };
}

function launchTime(
  launches: readonly number[],
): { readonly half: number; readonly most: number; readonly samples: number } | undefined {
  if (launches.length === 0) return undefined;
  const sorted = [...launches].sort((a, b) => a - b);
  return { half: quantile(sorted, 0.5), most: quantile(sorted, 0.9), samples: sorted.length };
}

/** Of one under way only those say anything that took longer than it has; with none of them, nothing is known. */
function remaining(launches: readonly number[], elapsed: number): Estimate | undefined {
  const longer = launches.filter((ms) => ms > elapsed);
  const time = launchTime(longer);
  if (time === undefined) return undefined;
  return tell(time.half - elapsed, time.most - elapsed, longer.length, { launches, deliveries: [] }, true);
}

/** Milliseconds between deliveries, the silence since the last one included: a pool that has stopped gets slower. */
function paceOf(deliveries: readonly number[], now: number): number | undefined {
  const first = deliveries[0];
  const last = deliveries.at(-1);
  if (first === undefined || last === undefined || deliveries.length < 2) return undefined;
  const mean = (last - first) / (deliveries.length - 1);
  return Math.max(mean, (now - first) / deliveries.length, 1);
}

function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]!;
}

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
      } else if (event === "request.fulfilled" && age <= PACE_MS)
        if (typeof provider === "string" && typeof pool === "string")
          before.delivered(poolKey(provider, pool), at + offset);
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
