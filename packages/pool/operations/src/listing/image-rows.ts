import { type Canary, imageBuildStates, imageUploadStates } from "@nodeyard/model";
import {
  type ImageStatus,
  type ImageWork,
  iso,
  isoOf,
  type ListedBuild,
  type ListedUpload,
} from "../index.ts";
import { ageOf, type Column, columns } from "./columns.ts";
import { anything, boolean, type Field, type Fields, maybe, moment, oneOf, text, texts } from "./fields.ts";

/** How far a build or an upload is. */
interface Worked {
  /** Null: nothing goes on, or it is not known. */
  readonly progress?: object | null;
}

const progress: Field<Worked> = [
  (z) =>
    z
      .object({
        phase: maybe(z),
        bytes: z.number(),
        total_bytes: z.number().nullable(),
        bytes_per_second: z.number(),
        elapsed_seconds: z.number(),
        eta_seconds: z.number().nullable(),
      })
      .nullable()
      .describe("of what goes on in the process that answers; null: nothing, or elsewhere"),
  (work) => work.progress ?? null,
];

/** How far a build or an upload is, as programs read it. */
export function progressRow({ phase, bytes, total, bytesPerSecond, elapsedMs, etaMs }: ImageWork) {
  return {
    phase,
    bytes: Math.round(bytes),
    total_bytes: total === null ? null : Math.round(total),
    bytes_per_second: Math.round(bytesPerSecond),
    elapsed_seconds: tenths(elapsedMs),
    eta_seconds: etaMs === null ? null : tenths(etaMs),
  };
}

function tenths(ms: number): number {
  return Math.round(ms / 100) / 10;
}

/** A build, for programs. Its `id` has the image's name before it, as Nodepool prints builds. */
export const buildFields: Fields<ListedBuild & Worked> = {
  id: [text, ({ image, record }) => `${image}-${record.id}`],
  image: [text, ({ image }) => image],
  builder: [maybe, ({ record }) => record.builder],
  formats: [texts, ({ record }) => record.formats],
  state: [oneOf(imageBuildStates), ({ record }) => record.state],
  since: [moment, ({ record }) => isoOf(record.stateTime)],
  paused: [boolean, ({ paused }) => paused],
  progress,
};

/** Columns of `dib-image-list`, with Nodepool's headings and keys. */
export const buildColumns: readonly Column[] = [
  ...columns({ ID: "id", Image: "image", Builder: "builder", Formats: "formats" }),
  // The old command line shows the pause in place of the state.
  {
    heading: "State",
    key: "state",
    show: ({ state, paused }) => (paused === true ? `paused (${state})` : `${state}`),
  },
  ...columns({ Age: ["age", ageOf("since")] }),
];

/** An upload, for programs. Its number alone repeats with each build and provider. */
export const uploadFields: Fields<ListedUpload & Worked> = {
  id: [text, ({ image, build, provider, record }) => `${image}-${build}/${provider}/${record.id}`],
  image: [text, ({ image }) => image],
  build: [text, ({ build }) => build],
  provider: [text, ({ provider }) => provider],
  upload: [text, ({ record }) => record.id],
  external_name: [maybe, ({ record }) => record.externalName],
  external_id: [anything, ({ record }) => record.externalId],
  state: [oneOf(imageUploadStates), ({ record }) => record.state],
  since: [moment, ({ record }) => isoOf(record.stateTime)],
  progress,
};

/** Columns of `image-list`, with Nodepool's headings and keys. */
export const uploadColumns = columns({
  "Build ID": ["id", ({ build }) => build],
  "Upload ID": ["upload_id", ({ upload }) => upload],
  Provider: "provider",
  Image: "image",
  "Provider Image Name": "external_name",
  "Provider Image ID": "external_id",
  State: "state",
  Age: ["age", ageOf("since")],
});

/** The requests and trials of a diskimage, for programs. */
export const imageStatusFields: Fields<ImageStatus> = {
  image: [text, ({ image }) => image],
  paused: [boolean, ({ paused }) => paused],
  build_request: [(z) => z.enum(["pending", "building"]).nullable(), ({ request }) => request?.state ?? null],
  build_requested_at: [moment, ({ request }) => request && iso(request.at * 1_000)],
  canary: [
    (z) => {
      const tally = z.object({
        boots: z.number(),
        failed: z.number(),
        logs: z.number().describe("sum of the logarithms of seconds"),
        squares: z.number().describe("sum of their squares"),
      });
      return z
        .object({
          candidate: maybe(z).describe("the build on trial"),
          since: z.number().nullable().describe("tree time, milliseconds"),
          share: z.number().describe("of launches, 0 to 1"),
          tallies: z.object({ candidate: tally, stable: tally }),
          rejected: texts(z).describe("builds that nothing is launched of any more"),
          last: z
            .looseObject({ build: z.string(), verdict: z.string(), why: z.string() })
            .nullable()
            .describe("how the last one ended"),
        })
        .nullable()
        .describe("the trial of a new build; null: there was none");
    },
    ({ canary }) => canary,
  ],
};

/** Columns of `image-status`, with Nodepool's headings and keys. */
export const imageColumns = columns({
  Image: "image",
  Paused: "paused",
  "Build Request": "build_request",
  "Build Request Age": ["build_request_age", ageOf("build_requested_at")],
});

/** The column that `image-status` has besides Nodepool's. */
export const trialColumns = columns({
  Trial: ["trial", ({ canary }) => canary && trialText(canary as Canary)],
});

/**
 * The current trial, else the result of the last one with its reason. Build ids are shortened to eight digits. Null: the image never
 * had a trial.
 */
function trialText({ candidate, tallies, share, last }: Canary): string | null {
  if (candidate !== null) {
    const { boots, failed } = tallies.candidate;
    return `${candidate.slice(0, 8)} gets ${Math.round(share * 100)} %: ${boots} booted, ${failed} failed`;
  }
  return last && `${last.build.slice(0, 8)} ${last.verdict}: ${last.why}`;
}
