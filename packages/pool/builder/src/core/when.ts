import type { ImageBuildRecord } from "@nodeyard/model";

/** The facts on which the next build of an image depends. Times are milliseconds of tree time. */
export interface BuildFacts {
  readonly now: number;
  readonly builds: Iterable<ImageBuildRecord>;
  /** Formats that the configuration and the providers of this builder want. */
  readonly formats: readonly string[];
  readonly rebuildAgeMs: number;
  /** By the configuration or by the flag in the tree. */
  readonly paused: boolean;
  /** The time of an open request for a build; undefined: none. */
  readonly requestedAt: number | undefined;
  /** Builds of this host whose sources have changed since. */
  readonly changed: ReadonlySet<string>;
}

/** A build to make and why, or why there is none. */
export type BuildChoice =
  | { readonly build: true; readonly cause: "first" | "age" | "formats" | "request" | "sources" }
  /** `at`: when to look again; undefined: when something changes. */
  | {
      readonly build: false;
      readonly why: "paused" | "no-formats" | "fresh" | "back-off";
      readonly at?: number;
    };

/** After one failure, milliseconds; doubles with each more. */
const FIRST_DELAY_MS = 60_000;
/** At most, milliseconds: a failing image is tried twice an hour for ever. */
const LAST_DELAY_MS = 30 * 60_000;

/**
 * The wait after `failures` failures in a row, milliseconds. Over any hour it allows six tries at most: after 1, 2, 4, 8 and 16
 * minutes and then every 30.
 */
export function delayAfter(failures: number): number {
  return failures <= 0 ? 0 : Math.min(LAST_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(failures - 1, 20));
}

/** When a record got its state, milliseconds of tree time; 0 for a record that does not say. */
export function timeOf({ stateTime }: { readonly stateTime: number | null }): number {
  return (stateTime ?? 0) * 1000;
}

/** Hosts agree on the time no better than this, milliseconds (docs/design/time.md). */
const SKEW_MS = 30_000;

/** Written by a clock that has been put back since: it says nothing of when. */
function isAhead(item: { readonly stateTime: number | null }, now: number): boolean {
  return timeOf(item) > now + SKEW_MS;
}

/** When to try again after these failures, the newest first: a clock that was put back holds nothing up, and the next failure tells the time. */
export function tryAgainAt(failures: readonly { readonly stateTime: number | null }[], now: number): number {
  const last = failures.find((failure) => !isAhead(failure, now));
  return last === undefined ? now : timeOf(last) + delayAfter(failures.length);
}

/** Newest first; two of one moment by id, so that everyone agrees. */
export function newestFirst<T extends { readonly stateTime: number | null; readonly id: string }>(
  items: Iterable<T>,
): T[] {
  return [...items].sort((a, b) => timeOf(b) - timeOf(a) || (a.id < b.id ? 1 : -1));
}

/** Failures since the last success: records of failed builds are kept as the memory of it, for all builders. */
export function failuresInARow(builds: Iterable<ImageBuildRecord>, now: number): readonly ImageBuildRecord[] {
  const all = newestFirst(builds);
  const ready = all.find((build) => build.state === "ready" && !isAhead(build, now));
  const since = ready === undefined ? Number.NEGATIVE_INFINITY : timeOf(ready);
  return all.filter((build) => build.state === "failed" && timeOf(build) >= since);
}

/**
 * Whether an image is built now (docs/contract/builder.md, "When an image is built"). A build in progress is detected by its lock, not
 * here. After each failure the image waits longer, unless a build was requested after the last failure.
 */
export function whenToBuild(facts: BuildFacts): BuildChoice {
  const { now, formats, requestedAt } = facts;
  if (facts.paused) return { build: false, why: "paused" };
  if (formats.length === 0) return { build: false, why: "no-formats" };
  const all = [...facts.builds];
  const cause = causeOf(facts, all);
  if (typeof cause === "number") return { build: false, why: "fresh", at: cause };
  const failures = failuresInARow(all, now);
  const last = failures[0];
  const asked = requestedAt !== undefined && (last === undefined || requestedAt > timeOf(last));
  const at = tryAgainAt(failures, now);
  if (!asked && at > now) return { build: false, why: "back-off", at };
  return { build: true, cause };
}

/** Why the image has to be built, or from when on its age will be the cause, milliseconds of tree time. */
function causeOf(
  { now, formats, rebuildAgeMs, requestedAt, changed }: BuildFacts,
  builds: readonly ImageBuildRecord[],
): Extract<BuildChoice, { build: true }>["cause"] | number {
  const [newest] = newestFirst(builds.filter(({ state }) => state === "ready"));
  if (requestedAt !== undefined) return "request";
  if (newest === undefined) return "first";
  if (formats.some((format) => !newest.formats.includes(format))) return "formats";
  if (changed.has(newest.id)) return "sources";
  const due = timeOf(newest) + rebuildAgeMs;
  return due <= now ? "age" : due;
}
