import { meaningOf, unknownMeaning, verdictMeaning } from "./meaning.ts";
import type { ImageLines, Story } from "./story.ts";

/** What `explain` says, for programs. */
export type Explanation = ReturnType<typeof toExplanation>;

/**
 * The story for programs. Keys are never renamed or removed within a version; times are ISO 8601, of the tree. `file` is the journal of
 * this machine.
 */
export function toExplanation(story: Story, file: string) {
  const { kind, id, state, about, waitsFor, next, history, asked, estimate, image } = story;
  return {
    v: 1,
    kind,
    id,
    state,
    since: iso(story.since),
    about,
    waits_for: waitsFor && reason(waitsFor, waitsFor.meaning),
    next,
    estimate: estimate && estimated(estimate, estimate.pool),
    pools: story.pools.map(({ unknown, ...line }) => ({
      ...reason(line, verdictMeaning(line.code, line.facts)),
      estimate: line.estimate && estimated(line.estimate, line.pool),
      no_estimate: unknown && unknownMeaning(unknown),
    })),
    steps: story.steps.map(({ began, ms, ...step }) => ({
      ...step,
      began: iso(began),
      seconds: ms === null ? null : ms / 1_000,
    })),
    events: history.events.map((past) => ({ ...past, at: iso(past.at), meaning: meaningOf(past) })),
    ...(image === undefined ? {} : { image: imageOf(image) }),
    journal: { file, problem: history.problem },
    members: {
      answered: asked.answers.map(({ member, hostname, version, leftOut }) => ({
        member,
        host: hostname,
        version,
        left_out: leftOut,
      })),
      silent: asked.silent,
    },
  };
}

interface ReasonParts {
  readonly facts: Readonly<Record<string, unknown>>;
  readonly nextTry: number | null;
  readonly since?: number | null;
}

/** A reason with its text; `meaning` is null for a reason of a later release. */
function reason<T extends ReasonParts>({ nextTry, facts, ...rest }: T, meaning: string | null) {
  const since = rest.since === undefined ? {} : { since: iso(rest.since) };
  return { ...rest, ...since, meaning, facts: timed(facts), next_try: iso(nextTry) };
}

/** Whether a fact is a moment, by its name. */
function isMoment(key: string, value: unknown): value is number {
  return typeof value === "number" && /_(at|since)$/.test(key);
}

function timed(known: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(known).map(([key, value]) => [key, isMoment(key, value) ? iso(value) : value]),
  );
}

/** ISO 8601; null for an invalid time. `ms`: milliseconds since the epoch. */
export function iso(ms: number | null): string | null {
  return ms === null || !Number.isFinite(ms) || Math.abs(ms) > 8.64e15 ? null : new Date(ms).toISOString();
}

function estimated(
  { likelyMs, fromMs, toMs, launches, uses }: Omit<NonNullable<Story["estimate"]>, "pool">,
  pool: string,
) {
  const seconds = {
    likely_seconds: likelyMs / 1_000,
    from_seconds: fromMs / 1_000,
    to_seconds: toMs / 1_000,
  };
  return { pool, ...seconds, launches, uses };
}

function imageOf({ builds, trial, builders }: ImageLines) {
  return {
    builds: builds.map((build) => ({
      ...build,
      since: iso(build.since),
      uploads: build.uploads.map(({ externalId, ...upload }) => ({
        ...upload,
        since: iso(upload.since),
        external_id: externalId,
      })),
    })),
    trial: trial && trialOf(trial),
    builders: builders.map(({ kind, image: _, ...line }) => ({
      work: kind,
      ...reason(line, verdictMeaning(line.code, line.facts)),
    })),
  };
}

function trialOf({ candidate, since, share, tallies, rejected, last }: NonNullable<ImageLines["trial"]>) {
  const tally = ({ boots, failed }: { readonly boots: number; readonly failed: number }) => ({
    booted: boots,
    failed,
  });
  return {
    candidate,
    since: iso(since),
    share,
    tallies: { candidate: tally(tallies.candidate), others: tally(tallies.stable) },
    rolled_back: rejected,
    last: last && { ...last, at: iso(last.at) },
  };
}
