import { type BreakerRule, drainedLevel, type Failure, HOUR_MS } from "./rule.ts";

/** What one process knows of the launches of a label, in all its places. */
export interface LabelTally {
  /** Failed launches that are not forgotten yet, a bucket that drains steadily; `at` is tree time, milliseconds. */
  readonly spent: { readonly level: number; readonly at: number };
  readonly inFlight: number;
  /** Failures in a row, and tree time of the first of them. */
  readonly row: number;
  readonly since: number;
  readonly last: Pick<Failure, "kind" | "error"> | undefined;
  /** One went well before that row. */
  readonly worked: boolean;
}

export function newTally(worked: boolean): LabelTally {
  return { spent: { level: 0, at: 0 }, inFlight: 0, row: 0, since: 0, last: undefined, worked };
}

export function failedLaunch(
  tally: LabelTally,
  last: Pick<Failure, "kind" | "error">,
  now: number,
  rule: BreakerRule,
): LabelTally {
  const spent = { level: levelNow(tally, now, rule) + 1, at: now };
  return { ...tally, spent, row: tally.row + 1, since: tally.row === 0 ? now : tally.since, last };
}

export function levelNow({ spent }: LabelTally, now: number, rule: BreakerRule): number {
  return drainedLevel(spent, now, rule);
}

/** Whether one more could exceed the budget if it and all under way failed. A label that works is not bounded so. */
export function isFull(tally: LabelTally, now: number, rule: BreakerRule): boolean {
  return !isTrusted(tally, rule) && levelNow(tally, now, rule) + tally.inFlight + 1 > rule.failedPerHour;
}

/** Whether one more would exceed the budget by itself. */
export function isSpent(tally: LabelTally, now: number, rule: BreakerRule): boolean {
  return !isTrusted(tally, rule) && levelNow(tally, now, rule) + 1 > rule.failedPerHour;
}

/** Tree time, milliseconds, at which there is room for one more. */
export function roomAt(tally: LabelTally, now: number, rule: BreakerRule): number {
  const over = Math.max(0, levelNow(tally, now, rule) + 1 - rule.failedPerHour);
  return Math.ceil(now + (over * HOUR_MS) / rule.failedPerHour);
}

/** Requests are declined at once: nothing has worked anywhere for so long that waiting is of no use. Room comes in time. */
export function isLabelHopeless({ row, last }: LabelTally, rule: BreakerRule): boolean {
  const enough = Math.max(rule.inARow, Math.min(rule.failedPerHour, rule.inARow * rule.hopeless));
  return row >= enough && last?.kind !== "capacity";
}

function isTrusted({ worked, row }: LabelTally, { inARow }: BreakerRule): boolean {
  return worked && row < inARow;
}
