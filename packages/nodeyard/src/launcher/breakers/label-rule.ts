import type { LabelBudget } from "../../operations/index.ts";
import { type BreakerRule, drainedLevel, ERROR_CHARS, type Failure, HOUR_MS } from "./rule.ts";

/** What is known of the launches of a label, in all its places. */
export interface LabelTally {
  /** Failed launches that are not forgotten yet, a bucket that drains steadily; `at`: steady milliseconds. */
  readonly spent: { readonly level: number; readonly at: number };
  /** Failures in a row, and the moment of the first of them, steady milliseconds. */
  readonly row: number;
  readonly since: number;
  readonly last: { readonly kind: string; readonly error: string } | undefined;
  /** One went well before that row. */
  readonly worked: boolean;
}

export function newTally(worked: boolean): LabelTally {
  return { spent: { level: 0, at: 0 }, row: 0, since: 0, last: undefined, worked };
}

/** What one process counted, and what the record says of all, its times by the monotonic clock. */
export function together(
  own: LabelTally,
  all: LabelBudget | undefined,
  now: number,
  rule: BreakerRule,
): LabelTally {
  if (all === undefined) return own;
  const spent = levelNow(all, now, rule) >= levelNow(own, now, rule) ? all.spent : own.spent;
  if (own.row > all.failures) return { ...own, spent };
  const { failures: row, since, kind, error } = all;
  return { spent, row, since, last: { kind, error }, worked: own.worked };
}

/** The record that tells all of it. */
export function budgetOf(label: string, { spent, row, since, last }: LabelTally): LabelBudget {
  const { kind = "unexpected", error = "" } = last ?? {};
  return { label, spent, failures: row, since, kind, error: error.slice(0, ERROR_CHARS) };
}

export function failedLaunches(
  tally: LabelTally,
  failures: readonly Pick<Failure, "kind" | "error">[],
  now: number,
  rule: BreakerRule,
): LabelTally {
  const count = failures.length;
  const spent = { level: levelNow(tally, now, rule) + count, at: now };
  const since = tally.row === 0 ? now : tally.since;
  return { ...tally, spent, row: tally.row + count, since, last: failures.at(-1) ?? tally.last };
}

export function levelNow({ spent }: Pick<LabelTally, "spent">, now: number, rule: BreakerRule): number {
  return drainedLevel(spent, now, rule);
}

/** A label that works is not bounded, until several launches of it have failed in a row. */
export function isTrusted({ worked, row }: LabelTally, { inARow }: BreakerRule): boolean {
  return worked && row < inARow;
}

/** How many launches may be under way, so that the budget is kept though all of them fail. */
export function places(tally: LabelTally, now: number, rule: BreakerRule): number {
  if (isTrusted(tally, rule)) return Number.POSITIVE_INFINITY;
  return Math.max(0, Math.floor(rule.failedPerHour - levelNow(tally, now, rule)));
}

/** Whether one more would exceed the budget by itself. */
export function isSpent(tally: LabelTally, now: number, rule: BreakerRule): boolean {
  return places(tally, now, rule) === 0;
}

/**
 * Which of the nodes that are being made have one of `most` places; `making` are their ids in ascending order, which is the same for
 * all launchers. A first launch leaves its place to each older node, whether that has begun or not. One that failed has used its own up:
 * it tries again only beside all that may be under way, which are among the first so many as the budget has.
 */
export function hasPlace(
  making: readonly string[],
  most: number,
  { failedPerHour }: BreakerRule,
): (node: string, again: boolean) => boolean {
  const last = making[most - 1];
  const begun = making.slice(0, failedPerHour);
  const lastBegun = begun.at(-1) ?? "";
  return (node, again) => {
    if (again) return begun.length - (node <= lastBegun ? 1 : 0) < most;
    return most > 0 && (last === undefined || node <= last);
  };
}

/** Steady milliseconds, at which there is room for one more. */
export function roomAt(tally: LabelTally, now: number, rule: BreakerRule): number {
  const over = Math.max(0, levelNow(tally, now, rule) + 1 - rule.failedPerHour);
  return Math.ceil(now + (over * HOUR_MS) / rule.failedPerHour);
}

/** Requests are declined at once: nothing has worked anywhere for so long that waiting is of no use. Room comes in time. */
export function isLabelHopeless({ row, last }: LabelTally, rule: BreakerRule): boolean {
  const enough = Math.max(rule.inARow, Math.min(rule.failedPerHour, rule.inARow * rule.hopeless));
  return row >= enough && last?.kind !== "capacity";
}
