import { unknownReasons } from "../../scheduler/index.ts";
import { unknownMeaning } from "./meaning.ts";
import type { Explanation } from "./shape.ts";
import type { ImageLines, PoolLine, Story, Wait } from "./story.ts";

type Estimate = NonNullable<Story["estimate"]>;

/** The story that `toExplanation` told, but for the trial of an image, of which stories have no text. */
export function fromExplanation(said: Explanation): Story {
  const { kind, id, state, about, next, waits_for: wait, members, journal, image } = said;
  return {
    ...{ kind, id, state, about, next },
    since: msOf(said.since),
    waitsFor: wait && ({ ...unreasoned(wait), meaning: wait.meaning } as Wait),
    estimate: said.estimate && estimateOf(said.estimate),
    pools: said.pools.map(({ estimate, no_estimate: none, ...line }) => {
      const unknown = Object.keys(unknownReasons).find((reason) => unknownMeaning(reason) === none) ?? null;
      return { ...unreasoned(line), estimate: estimate && estimateOf(estimate), unknown } as PoolLine;
    }),
    steps: said.steps.map(({ began, seconds, ...step }) => ({
      ...step,
      began: msOf(began) ?? 0,
      ms: seconds === null ? null : seconds * 1_000,
    })),
    history: {
      events: said.events.map(({ meaning: _, at, ...past }) => ({ ...past, at: msOf(at) ?? 0 })),
      problem: journal.problem,
    },
    asked: {
      answers: members.answered.map(({ host, left_out: leftOut, ...one }) => ({
        ...one,
        hostname: host,
        leftOut,
      })) as unknown as Story["asked"]["answers"],
      silent: members.silent,
    },
    ...(image === undefined ? {} : { image: imageOf(image, id) }),
  };
}

function msOf(moment: string | null): number | null {
  return moment === null ? null : Date.parse(moment);
}

interface Said {
  readonly code: string;
  readonly meaning: string | null;
  readonly facts: Readonly<Record<string, unknown>>;
  readonly next_try: string | null;
  readonly since?: string | null;
}

function unreasoned<T extends Said>({ meaning: _, next_try: next, facts, since, ...rest }: T) {
  const when = since === undefined ? {} : { since: msOf(since) };
  return { ...rest, ...when, facts: untimed(facts), nextTry: msOf(next) };
}

/** Moments are told by their names. */
function untimed(facts: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(facts).map(([key, value]) => [
      key,
      /_(at|since)$/.test(key) && typeof value === "string" ? Date.parse(value) : value,
    ]),
  );
}

function estimateOf({ pool, launches, uses, ...seconds }: NonNullable<Explanation["estimate"]>): Estimate {
  return {
    ...{ pool, launches, uses },
    likelyMs: seconds.likely_seconds * 1_000,
    fromMs: seconds.from_seconds * 1_000,
    toMs: seconds.to_seconds * 1_000,
  };
}

function imageOf({ builds, builders }: NonNullable<Explanation["image"]>, image: string): ImageLines {
  return {
    builds: builds.map(({ since, uploads, ...build }) => ({
      ...build,
      since: msOf(since),
      uploads: uploads.map(({ since: at, external_id: externalId, ...upload }) => ({
        ...upload,
        externalId,
        since: msOf(at),
      })),
    })),
    trial: null,
    builders: builders.map(
      ({ work: kind, ...line }) =>
        ({ ...unreasoned(line), kind, image }) as unknown as ImageLines["builders"][number],
    ),
  };
}
