import { z } from "zod";
import { verdictMeaning } from "./meaning.ts";
import { iso, timed } from "./moments.ts";
import type { ImageLines } from "./story.ts";

const time = z.iso.datetime().nullable();
const tally = z.strictObject({ booted: z.int(), failed: z.int() });

/** What `explain` says of an image beside the rest, for programs. Keys are never renamed or removed within a version. */
export const imageSchema = z.strictObject({
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

export function toImage({ builds, trial, builders }: ImageLines): z.infer<typeof imageSchema> {
  return {
    builds: builds.map(({ since, uploads, formats, ...build }) => ({
      ...build,
      since: iso(since),
      formats: [...formats],
      uploads: uploads.map(({ provider, id, state, since: changed, externalId }) => ({
        provider,
        id,
        state,
        since: iso(changed),
        external_id: externalId,
      })),
    })),
    trial: trial === null ? null : toTrial(trial),
    builders: builders.map(({ member, host, kind, provider, code, facts, nextTry }) => ({
      member,
      host,
      work: kind,
      provider,
      code,
      meaning: verdictMeaning(code, facts),
      facts: timed(facts),
      next_try: iso(nextTry),
    })),
  };
}

function toTrial({ candidate, since, share, tallies, rejected, last }: NonNullable<ImageLines["trial"]>) {
  const told = ({ boots, failed }: { readonly boots: number; readonly failed: number }) => ({
    booted: boots,
    failed,
  });
  return {
    candidate,
    since: iso(since),
    share,
    tallies: { candidate: told(tallies.candidate), others: told(tallies.stable) },
    rolled_back: [...rejected],
    last: last && { ...last, at: iso(last.at) },
  };
}
