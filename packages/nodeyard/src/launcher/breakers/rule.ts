import type { DriverErrorKind } from "@nodeyard/driver";
import { backoff, type Random } from "@nodeyard/runtime";
import type { Breaker } from "../../operations/index.ts";
import type { Offering } from "../../scheduler/index.ts";

export interface BreakerRule {
  /** Failures in a row that open a breaker; a cloud without room opens it at once. */
  readonly inARow: number;
  /** Pause before the first try of an open breaker, and the longest, milliseconds. */
  readonly firstMs: number;
  readonly mostMs: number;
  /** Failed launches per hour, at most, among all launchers: of an offering, and of a label in all places. */
  readonly failedPerHour: number;
  /** Openings in a row after which requests are declined instead of kept waiting: it does not come back by itself. */
  readonly hopeless: number;
}

export const defaultRule: BreakerRule = {
  inARow: 5,
  firstMs: 15_000,
  mostMs: 240_000,
  failedPerHour: 60,
  hopeless: 4,
};

export const HOUR_MS = 3_600_000;
/** Of the text of an error that is kept. */
export const ERROR_CHARS = 500;

/** What one process knows of an offering beside the record. */
export interface Tally {
  /** Failures in a row. */
  readonly row: number;
  readonly spent: Breaker["spent"];
}

export const noFailures: Tally = { row: 0, spent: { level: 0, at: 0 } };

export interface Failure {
  readonly kind: DriverErrorKind | "unexpected";
  readonly error: string;
  /** Whether it was the one try that an open breaker lets through. */
  readonly probe: boolean;
}

/**
 * Kinds that tell nothing of the offering: quota is counted elsewhere, and what is configured wrong is declined. The second
 * uses up the budget all the same.
 */
const UNTOLD: ReadonlySet<Failure["kind"]> = new Set(["quota", "configuration"]);

/**
 * What a failure makes of breaker and tally. `breaker` is undefined when its record stays as it is. All times are of one clock, that of
 * `now`. Pure but for chance.
 */
export function onFailure(
  { provider, az, type }: Offering,
  before: Breaker | undefined,
  tally: Tally,
  failure: Failure,
  now: number,
  rule: BreakerRule,
  random: Random,
): { readonly breaker: Breaker | undefined; readonly tally: Tally } {
  if (failure.kind === "quota") return { breaker: undefined, tally };
  const level = 1 + Math.max(levelAt(before?.spent, now, rule), levelAt(tally.spent, now, rule));
  const told = !UNTOLD.has(failure.kind);
  const counted: Tally = { row: told ? tally.row + 1 : tally.row, spent: { level, at: now } };
  // A crowd that fails together opens it once: only who tried since may open it again.
  if (before !== undefined && !failure.probe) return { breaker: undefined, tally: counted };
  const overspent = level >= rule.failedPerHour;
  const broken = told && (failure.probe || failure.kind === "capacity" || counted.row >= rule.inARow);
  if (!overspent && !broken) return { breaker: undefined, tally: counted };
  const opens = (before?.opens ?? 0) + 1;
  const pause = backoff(random, opens - 1, rule.firstMs, rule.mostMs);
  const drained = overspent ? drainMs(level, rule) : 0;
  const breaker: Breaker = {
    provider,
    az,
    type,
    why: drained > pause ? "budget" : "failures",
    kind: failure.kind,
    error: failure.error.slice(0, ERROR_CHARS),
    failures: before === undefined ? Math.max(counted.row, 1) : before.failures + 1,
    opens,
    since: before?.since ?? now,
    until: Math.round(now + Math.max(pause, drained)),
    spent: counted.spent,
  };
  return { breaker, tally: counted };
}

/** From when one may try, by the clock of the breaker: one that was closed by a smaller budget than that of now opens sooner. */
export function opensAt({ why, until, spent }: Breaker, rule: BreakerRule): number {
  return why === "failures" ? until : Math.min(until, Math.round(spent.at + drainMs(spent.level, rule)));
}

/** How far ahead `until` can lie when it is set, milliseconds: a pause varies by 40 %. */
export function furthest({ spent }: Breaker, rule: BreakerRule): number {
  return Math.max(1.4 * rule.mostMs, drainMs(spent.level, rule));
}

/** Until there is room for one more. */
function drainMs(level: number, { failedPerHour }: BreakerRule): number {
  return (Math.max(0, level - failedPerHour + 1) * HOUR_MS) / failedPerHour;
}

/** Whether requests are declined at once, since waiting has not helped. A cloud without room gets some in time. */
export function isHopeless({ opens, kind }: Breaker, rule: BreakerRule): boolean {
  return opens >= rule.hopeless && kind !== "capacity";
}

function levelAt(spent: Breaker["spent"] | undefined, now: number, rule: BreakerRule): number {
  return spent === undefined ? 0 : drainedLevel(spent, now, rule);
}

/** What is left of the failures of the last hour. */
export function drainedLevel(spent: Breaker["spent"], now: number, rule: BreakerRule): number {
  return Math.max(0, spent.level - (Math.max(0, now - spent.at) * rule.failedPerHour) / HOUR_MS);
}
