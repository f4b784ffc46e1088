import { z } from "zod";

const time = z.iso.datetime().nullable();
const tally = z.strictObject({ booted: z.int(), failed: z.int() });

/** Of an image, beside the rest. */
const imageSchema = z.strictObject({
  builds: z.array(
    z.strictObject({
      id: z.string(),
      state: z.string(),
      since: time,
      builder: z.string().nullable(),
      formats: z.array(z.string()),
      trial: z.enum(["on-trial", "rolled-back"]).nullable(),
      nodes: z.int(),
      uploads: z.array(
        z.strictObject({
          provider: z.string(),
          id: z.string(),
          state: z.string(),
          since: time,
          external_id: z.unknown(),
        }),
      ),
    }),
  ),
  /** Of the newest build that has or had one. */
  trial: z
    .strictObject({
      candidate: z.string().nullable(),
      since: time,
      share: z.number(),
      tallies: z.strictObject({ candidate: tally, others: tally }),
      rolled_back: z.array(z.string()),
      last: z
        .strictObject({
          build: z.string(),
          verdict: z.enum(["promoted", "rolled-back", "dropped"]),
          why: z.string(),
          at: time,
        })
        .nullable(),
    })
    .nullable(),
  builders: z.array(
    z.strictObject({
      member: z.string(),
      host: z.string(),
      work: z.enum(["build", "upload"]),
      provider: z.string().nullable(),
      code: z.string(),
      meaning: z.string().nullable(),
      facts: z.record(z.string(), z.unknown()),
      next_try: time,
    }),
  ),
});

const facts = z.record(z.string(), z.unknown());
const seconds = z.number();

const estimate = z.strictObject({
  pool: z.string(),
  likely_seconds: seconds,
  from_seconds: seconds,
  to_seconds: seconds,
  launches: z.int(),
  uses: z.int(),
});

/** What `explain --json` prints, strictly: keys are never renamed or removed within a version; times are ISO 8601, of the tree. */
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
      no_estimate: z.string().nullable(),
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
