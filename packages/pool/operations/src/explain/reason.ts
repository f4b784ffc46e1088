/** A reason as launchers and builders say it: times are milliseconds of tree time. */
interface ReasonParts {
  readonly facts: Readonly<Record<string, unknown>>;
  readonly nextTry: number | null;
  readonly since?: number | null;
}

/** A reason for programs, with its text; `meaning` is null for a reason of a later release. */
export function reason<T extends ReasonParts>({ nextTry, facts, ...rest }: T, meaning: string | null) {
  const since = rest.since === undefined ? {} : { since: iso(rest.since) };
  return { ...rest, ...since, meaning, facts: timed(facts), next_try: iso(nextTry) };
}

/** Whether a fact is a moment, by its name. */
function isMoment(key: string, value: unknown): value is number {
  return typeof value === "number" && /_(at|since)$/.test(key);
}

/** Facts whose moments are ISO 8601. */
export function timed(known: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(known).map(([key, value]) => [key, isMoment(key, value) ? iso(value) : value]),
  );
}

/** ISO 8601; null for an invalid time. `ms`: milliseconds since the epoch. */
export function iso(ms: number | null): string | null {
  return ms === null || !Number.isFinite(ms) || Math.abs(ms) > 8.64e15 ? null : new Date(ms).toISOString();
}

/** The same for a time of a record: `seconds` of tree time. */
export function isoOf(seconds: number | null): string | null {
  return iso(seconds === null ? null : seconds * 1_000);
}
