import type { DriverErrorKind } from "@nodeyard/driver";
import type { FailureRecord, FailureScope } from "@nodeyard/model";
import { backoff, type Random } from "@nodeyard/runtime";

/**
 * What failures of launches lead to, as pure functions: the scheduler judges by them, and launchers write by them what they share. All
 * times are of the monotonic clock, milliseconds.
 */
export interface FailureRule {
  /** Failures in a row that close an offering; a cloud without room closes it at once. */
  readonly inARow: number;
  /** Pause before the first try of a closed offering, and the longest, milliseconds. */
  readonly firstMs: number;
  readonly mostMs: number;
  /** Failed launches per hour, at most, among all launchers: of an offering, and of a label in all places. */
  readonly failedPerHour: number;
  /** Closings in a row after which requests are declined instead of kept waiting: it does not come back by itself. */
  readonly hopeless: number;
}

/** The rule with the one figure of it that the configuration may set (`max-failed-launches-per-hour`). */
export function failureRule(failedPerHour = 60): FailureRule {
  return { inARow: 5, firstMs: 15_000, mostMs: 240_000, failedPerHour, hopeless: 4 };
}

const HOUR_MS = 3_600_000;
/** Of the text of an error that is kept. */
const ERROR_CHARS = 500;

/** Kinds that close an offering at once: the next launch there would fail in the same way. */
const AT_ONCE: ReadonlySet<string> = new Set(["capacity", "unsupported", "access"]);
/** Kinds for which a request waits as long as it takes: the cloud will have room again, or an operator gives the provider its right back. */
const WAITED_FOR: ReadonlySet<string> = new Set(["capacity", "access"]);

/** What is counted of the launches of an offering or a label. */
export interface Tally {
  /** Failed launches that are neither forgotten nor made good, a bucket that drains steadily, and an offering's with each success. */
  readonly spent: { readonly level: number; readonly at: number };
  /** Failures in a row, and the moment of the first of them. */
  readonly row: number;
  readonly since: number;
  readonly last: { readonly kind: string; readonly error: string } | undefined;
  /** One launch succeeded before that row. */
  readonly worked: boolean;
}

/** One launch that failed. */
export interface Failure {
  readonly kind: DriverErrorKind | "unexpected";
  readonly error: string;
  /** Whether it was the one try that a closed offering lets through. */
  readonly probe: boolean;
}

/** A tally of nothing. */
export function newTally(worked = false): Tally {
  return { spent: { level: 0, at: 0 }, row: 0, since: 0, last: undefined, worked };
}

/** What one process counted, and what the record says of all. */
export function together(own: Tally, all: FailureRecord | undefined, now: number, rule: FailureRule): Tally {
  if (all === undefined) return own;
  const spent = levelOf(all, now, rule) >= levelOf(own, now, rule) ? all.spent : own.spent;
  if (own.row > all.failures) return { ...own, spent };
  const { failures: row, since, kind, error } = all;
  return { spent, row, since, last: { kind, error }, worked: own.worked };
}

/**
 * Adds failures that were reported together to the tally and the shared record; `record` is undefined when the record does not change.
 * A refusal for quota counts against neither zone nor label: it closes the provider's quota. A launch that is configured wrong counts
 * only against the budget of its offering, because its request is declined. A provider that is refused says nothing of the label. Pure, but for
 * the given source of randomness.
 */
export function onFailures(
  scope: FailureScope,
  own: Tally,
  before: FailureRecord | undefined,
  failures: readonly Failure[],
  now: number,
  rule: FailureRule,
  random: Random,
): { readonly tally: Tally; readonly record: FailureRecord | undefined } {
  const counted = failures.filter(
    ({ kind }) => kind !== "quota" && (kind !== "access" || scope === "offering"),
  );
  const last = counted.at(-1);
  if (last === undefined) return { tally: own, record: undefined };
  const telling = counted.filter(({ kind }) => scope === "label" || kind !== "configuration");
  const known = together(own, before, now, rule);
  const tally: Tally = {
    spent: { level: levelOf(known, now, rule) + counted.length, at: now },
    row: known.row + telling.length,
    since: known.row === 0 ? now : known.since,
    last: { kind: last.kind, error: last.error.slice(0, ERROR_CHARS) },
    worked: known.worked,
  };
  if (scope === "offering")
    return { tally, record: closing(before, tally, counted, telling, now, rule, random) };
  const { spent, row, since } = tally;
  const record = isTrusted(tally, rule) ? undefined : { spent, failures: row, since, ...tally.last! };
  return { tally, record };
}

/**
 * As many successes of an offering make good one failure of the hour each. So the budget is spent on what fails more often than it works; a cloud
 * that loses one answer in twenty closes nothing, however many launches an hour has.
 */
export function makeGood(own: Tally, successes: number, now: number, rule: FailureRule): Tally {
  if (successes === 0) return own;
  return { ...own, spent: { level: Math.max(0, levelOf(own, now, rule) - successes), at: now } };
}

/** The record of an offering that closes, or closes again. */
function closing(
  before: FailureRecord | undefined,
  { spent, row, last }: Tally,
  counted: readonly Failure[],
  telling: readonly Failure[],
  now: number,
  rule: FailureRule,
  random: Random,
): FailureRecord | undefined {
  const probe = telling.some((failure) => failure.probe);
  // A crowd that fails together closes it once: only who tried since may close it again.
  if (before !== undefined && !counted.some((failure) => failure.probe)) return undefined;
  const overspent = spent.level >= rule.failedPerHour;
  const atOnce = telling.some(({ kind }) => AT_ONCE.has(kind));
  const broken = probe || atOnce || (telling.length > 0 && row >= rule.inARow);
  if (!overspent && !broken) return undefined;
  const opens = (before?.pause?.opens ?? 0) + 1;
  const pause = backoff(random, opens - 1, rule.firstMs, rule.mostMs);
  const drained = overspent ? drainMs(spent.level, rule) : 0;
  return {
    spent,
    failures: before === undefined ? Math.max(row, 1) : before.failures + counted.length,
    since: before?.since ?? now,
    ...last!,
    pause: {
      why: drained > pause ? "budget" : "failures",
      opens,
      until: Math.round(now + Math.max(pause, drained)),
    },
  };
}

/** From when a closed offering may be tried: one that was closed by a smaller budget than that of now, sooner. */
export function opensAt({ pause, spent }: Pick<FailureRecord, "spent" | "pause">, rule: FailureRule): number {
  if (pause === undefined) return Number.NEGATIVE_INFINITY;
  const { why, until } = pause;
  return why === "failures" ? until : Math.min(until, Math.round(spent.at + drainMs(spent.level, rule)));
}

/** How far ahead `until` can lie when it is set, milliseconds: a pause varies by 40 %. */
export function furthest({ spent }: Pick<FailureRecord, "spent">, rule: FailureRule): number {
  return Math.max(1.4 * rule.mostMs, drainMs(spent.level, rule));
}

/** Until there is room for one more. */
function drainMs(level: number, { failedPerHour }: FailureRule): number {
  return (Math.max(0, level - failedPerHour + 1) * HOUR_MS) / failedPerHour;
}

/**
 * Whether requests are declined at once, because waiting has not helped: an offering has closed too often in a row, or too many launches
 * of a label have failed in a row over all offerings. At the first failure where the zone never has the type, so that another zone is taken
 * or the request fails.
 */
export function isHopeless(
  { row, last }: Pick<Tally, "row" | "last">,
  pause: FailureRecord["pause"],
  rule: FailureRule,
): boolean {
  if (last !== undefined && WAITED_FOR.has(last.kind)) return false;
  if (pause !== undefined) return last?.kind === "unsupported" || pause.opens >= rule.hopeless;
  return row >= Math.max(rule.inARow, Math.min(rule.failedPerHour, rule.inARow * rule.hopeless));
}

/** What is left of the failures of the last hour. */
export function levelOf(
  { spent }: Pick<Tally, "spent">,
  now: number,
  { failedPerHour }: FailureRule,
): number {
  return Math.max(0, spent.level - (Math.max(0, now - spent.at) * failedPerHour) / HOUR_MS);
}

/** A label that works is not bounded, until several launches of it have failed in a row. */
export function isTrusted({ worked, row }: Tally, { inARow }: FailureRule): boolean {
  return worked && row < inARow;
}

/** How many launches of a label may be under way, so that the budget is kept though all of them fail. */
export function places(tally: Tally, now: number, rule: FailureRule): number {
  if (isTrusted(tally, rule)) return Number.POSITIVE_INFINITY;
  return Math.max(0, Math.floor(rule.failedPerHour - levelOf(tally, now, rule)));
}

/**
 * Whether a node has one of `most` places; `making` are the ids of the nodes of its label that are being made, in ascending order, which is
 * the same for all launchers. A first launch leaves its place to each older node, whether that has begun or not. One that failed has used
 * its own up: it tries again only beside all that may be under way, which are among the first so many as the budget has.
 */
export function hasPlace(
  making: { readonly size: number; at(index: number): string | undefined },
  most: number,
  { node, again }: { readonly node: string; readonly again: boolean },
  { failedPerHour }: FailureRule,
): boolean {
  if (again) {
    const begun = Math.min(making.size, failedPerHour);
    return begun - (node <= (making.at(begun - 1) ?? "") ? 1 : 0) < most;
  }
  const last = making.at(most - 1);
  return most > 0 && (last === undefined || node <= last);
}

/** When there is room for one more launch of a label. */
export function roomAt(tally: Tally, now: number, rule: FailureRule): number {
  const over = Math.max(0, levelOf(tally, now, rule) + 1 - rule.failedPerHour);
  return Math.ceil(now + (over * HOUR_MS) / rule.failedPerHour);
}

/** Whether one request may try a closed gate. Planning and launching both ask this function: they must never disagree. */
export function mayTry(until: number, now: number): boolean {
  return until <= now;
}
