import { meaningOf, unknownMeaning, verdictMeaning } from "./meaning.ts";
import { iso, reason } from "./reason.ts";
import type { Story } from "./story.ts";

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
    ...(image === undefined ? {} : { image }),
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
