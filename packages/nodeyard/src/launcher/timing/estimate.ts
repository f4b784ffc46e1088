import type { Standing } from "../../scheduler/index.ts";

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
