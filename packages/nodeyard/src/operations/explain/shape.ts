import { z } from "zod";
import { imageSchema, toImage } from "./image-shape.ts";
import { meaningOf, verdictMeaning } from "./meaning.ts";
import { iso, timed } from "./moments.ts";
import type { Story } from "./story.ts";

const time = z.iso.datetime().nullable();
const facts = z.record(z.string(), z.unknown());
const seconds = z.number();

const estimate = z.strictObject({
  pool: z.string(),
  from_seconds: seconds,
  to_seconds: seconds,
  /** How sure: "well" rests on ten samples or more, "guess" on fewer than three or on a try that may fail. */
  sure: z.enum(["well", "roughly", "guess"]),
  launches: z.int(),
  deliveries: z.int(),
});

/** What `explain` says, for programs. Keys are never renamed or removed within a version; times are ISO 8601, of the tree. */
export const explanationSchema = z.strictObject({
  v: z.literal(1),
  kind: z.enum(["request", "lease", "node", "label", "image"]),
  id: z.string(),
  state: z.string(),
  since: time,
  about: facts,
  waits_for: z
    .strictObject({
      code: z.string(),
      meaning: z.string(),
      facts,
      since: time,
      next_try: time,
      source: z.enum(["launcher", "builder", "journal", "tree"]),
    })
    .nullable(),
  next: z.string(),
  estimate: estimate.nullable(),
  pools: z.array(
    z.strictObject({
      pool: z.string(),
      member: z.string(),
      host: z.string(),
      provider: z.string(),
      outlook: z.enum(["serves", "can", "waits", "declines", "lacks"]),
      code: z.string(),
      meaning: z.string().nullable(),
      facts,
      since: time,
      next_try: time,
      position: z.int().nullable(),
      waiting: z.int(),
      estimate: estimate.nullable(),
    }),
  ),
  steps: z.array(
    z.strictObject({
      node: z.string(),
      of: z.string(),
      attempt: z.int(),
      step: z.string(),
      began: time,
      seconds: seconds.nullable(),
      error: z.string().nullable(),
    }),
  ),
  events: z.array(
    z.strictObject({
      at: time,
      event: z.string(),
      meaning: z.string().nullable(),
      request: z.string().nullable(),
      node: z.string().nullable(),
      facts,
      by: z.string().nullable(),
    }),
  ),
  /** Of images only. */
  image: imageSchema.optional(),
  journal: z.strictObject({ file: z.string(), problem: z.string().nullable() }),
  members: z.strictObject({
    answered: z.array(
      z.strictObject({
        member: z.string(),
        host: z.string(),
        version: z.string(),
        left_out: z.strictObject({ events: z.int(), pools: z.int() }),
      }),
    ),
    silent: z.array(z.strictObject({ member: z.string(), why: z.string() })),
  }),
});

export type Explanation = z.infer<typeof explanationSchema>;

/** `file` is the journal of this machine. */
export function toExplanation(story: Story, file: string): Explanation {
  const { kind, id, state, about, waitsFor, next, history, asked, pools, steps } = story;
  return {
    v: 1,
    kind,
    id,
    state,
    since: iso(story.since),
    about,
    waits_for:
      waitsFor === null
        ? null
        : {
            code: waitsFor.code,
            meaning: waitsFor.meaning,
            facts: timed(waitsFor.facts),
            since: iso(waitsFor.since),
            next_try: iso(waitsFor.nextTry),
            source: waitsFor.source,
          },
    next,
    estimate: story.estimate === null ? null : estimated(story.estimate, story.estimate.pool),
    pools: pools.map((line) => ({
      pool: line.pool,
      member: line.member,
      host: line.host,
      provider: line.provider,
      outlook: line.outlook,
      code: line.code,
      meaning: verdictMeaning(line.code, line.facts),
      facts: timed(line.facts),
      since: iso(line.since),
      next_try: iso(line.nextTry),
      position: line.position,
      waiting: line.waiting,
      estimate: line.estimate === null ? null : estimated(line.estimate, line.pool),
    })),
    steps: steps.map(({ began, ms, ...step }) => ({
      node: step.node,
      of: step.of,
      attempt: step.attempt,
      step: step.step,
      began: iso(began),
      seconds: ms === null ? null : ms / 1_000,
      error: step.error,
    })),
    events: history.events.map((past) => ({
      at: iso(past.at),
      event: past.event,
      meaning: meaningOf(past),
      request: past.request,
      node: past.node,
      facts: past.facts,
      by: past.by,
    })),
    ...(story.image === undefined ? {} : { image: toImage(story.image) }),
    journal: { file, problem: history.problem },
    members: {
      answered: asked.answers.map(({ member, hostname, version, leftOut }) => ({
        member,
        host: hostname,
        version,
        left_out: leftOut,
      })),
      silent: [...asked.silent],
    },
  };
}

function estimated(
  { fromMs, toMs, sure, launches, deliveries }: Omit<NonNullable<Story["estimate"]>, "pool">,
  pool: string,
): z.infer<typeof estimate> {
  return { pool, from_seconds: fromMs / 1_000, to_seconds: toMs / 1_000, sure, launches, deliveries };
}
