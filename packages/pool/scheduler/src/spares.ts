import { Cron } from "croner";

/** From a moment of the day on, so many spares. */
export interface SpareTime {
  /** Minute, hour, day of the month, month and day of the week, or a nickname as `@daily`. */
  readonly cron: string;
  /** IANA name. */
  readonly timezone: string;
  readonly spares: number;
}

/** A wait that most requests should not exceed. */
export interface SpareTarget {
  /** Milliseconds. */
  readonly withinMs: number;
  /** Of all requests, percent. */
  readonly percent: number;
  /** For the spares of the target together, in the currency of the prices; null: no limit. */
  readonly budgetPerHour: number | null;
}

/** How many nodes of a label are kept ready. What asks for the most spares counts, within `min` and `max`. */
export interface SparePolicy {
  readonly min: number;
  readonly max: number;
  /** Of the nodes in use, percent. */
  readonly share: number;
  readonly times: readonly SpareTime[];
  readonly target: SpareTarget | null;
  /** How long a node that is not wanted any more stays, milliseconds. */
  readonly idleMs: number;
  /** They are suspended where the provider can; those of `min-ready` run. */
  readonly suspended: boolean;
}

/** What is known of the demand for a label. Times are tree time, milliseconds. */
export interface DemandFacts {
  /** When each node was asked for, ascending. */
  readonly asked: readonly number[];
  /** How long launches took lately, milliseconds. */
  readonly launches: readonly number[];
  /** What an hour of a node costs; absent: not known. */
  readonly perHour?: number;
}

/** The facts by which the number of spares is decided. */
interface SpareFacts {
  readonly inUse: number;
  readonly demand: DemandFacts | undefined;
}

const HOUR_MS = 3_600_000;
const WEEK_MS = 7 * 24 * HOUR_MS;
/** A target follows the demand in steps of this length, milliseconds. */
const STEP_MS = 600_000;

/**
 * How many spares a label is to have at `now` (tree time, milliseconds), and until when that holds if no fact changes; Infinity: for ever. Pure.
 */
export function spareNumber(
  { min, max, share, times, target }: SparePolicy,
  { inUse, demand }: SpareFacts,
  now: number,
): { readonly spares: number; readonly until: number } {
  const timed = scheduled(times, now);
  const wanted = [min, Math.ceil((share / 100) * inUse), timed.spares];
  if (target !== null) wanted.push(aimed(target, demand, now));
  const until = target === null ? timed.until : Math.min(timed.until, now + STEP_MS);
  return { spares: Math.min(max, Math.max(...wanted)), until };
}

/** The number of the entry whose time came last holds until the next one of any entry. */
function scheduled(times: readonly SpareTime[], now: number): { spares: number; until: number } {
  let [last, spares, until] = [Number.NEGATIVE_INFINITY, 0, Number.POSITIVE_INFINITY];
  for (const time of times) {
    const cron = cronOf(time);
    // Croner counts whole seconds, and leaves out the reference itself.
    const [before] = cron.previousRuns(1, new Date(now + 1_000));
    if (before !== undefined && before.getTime() >= last) [last, spares] = [before.getTime(), time.spares];
    until = Math.min(until, cron.nextRun(new Date(now))?.getTime() ?? Number.POSITIVE_INFINITY);
  }
  return { spares, until };
}

/** Never started, so it is only a calendar: it sets no timer and reads no clock. Throws for a text that is none, or never comes. */
export function cronOf({ cron, timezone }: Pick<SpareTime, "cron" | "timezone">): Cron {
  const made = new Cron(cron, { timezone, paused: true, mode: "5-part" });
  if (made.nextRun(new Date(0)) === null) throw new RangeError(`${cron} never comes`);
  return made;
}

/**
 * So many that `percent` of the past requests would have found one: a spare that is taken is replaced after the time of a launch, so a request
 * finds one if at most so many nodes were asked for within that time before it, itself included. The past is the last hour, and the hour that
 * came a week ago, whichever needs more.
 */
function aimed(
  { withinMs, percent, budgetPerHour }: SpareTarget,
  demand: DemandFacts | undefined,
  now: number,
) {
  if (demand === undefined || demand.launches.length === 0) return 0;
  const { asked, launches, perHour } = demand;
  // A launch that is over within the wanted wait is as good as a spare.
  const windowMs = rank(launches, percent) - withinMs;
  if (windowMs <= 0) return 0;
  const needed = Math.max(
    crowd(asked, windowMs, percent, now - HOUR_MS),
    crowd(asked, windowMs, percent, now - WEEK_MS),
  );
  if (budgetPerHour === null) return needed;
  // What cannot be priced cannot be kept within a budget.
  return perHour === undefined
    ? 0
    : Math.min(needed, perHour > 0 ? Math.floor(budgetPerHour / perHour) : needed);
}

/** Of each node asked for within the hour from `from`: how many were within `windowMs` before it; the rank of `percent`. */
function crowd(asked: readonly number[], windowMs: number, percent: number, from: number): number {
  const counts: number[] = [];
  let [first, index] = [0, 0];
  for (const at of asked) {
    if (at >= from + HOUR_MS) break;
    while (asked[first]! <= at - windowMs) first++;
    index++;
    if (at >= from) counts.push(index - first);
  }
  return counts.length === 0 ? 0 : rank(counts, percent);
}

/** The smallest value that so many percent do not exceed. */
function rank(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)]!;
}
