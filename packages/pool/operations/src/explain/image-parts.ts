import type { ImageOutlook } from "@nodeyard/asking";
import { type Canary, type NodeRecord, paths } from "@nodeyard/model";
import type { ListedBuild, ListedUpload } from "../images/index.ts";
import { verdictMeaning } from "./meaning.ts";
import { iso, isoOf, reason } from "./reason.ts";

/** What a builder makes of an image. */
export type BuilderLine = ReturnType<typeof builderLine>;

/** `member`: the builder's name under `/nodeyard/members`; `host`: where it runs. */
export function builderLine({ kind, image: _, ...outlook }: ImageOutlook, member: string, host: string) {
  const meaning = verdictMeaning(outlook.code, outlook.facts);
  return { work: kind, ...reason({ ...outlook, member, host }, meaning) };
}

/** The records of an image. */
interface Known {
  /** The newest first. */
  readonly builds: readonly ListedBuild[];
  readonly uploads: readonly ListedUpload[];
  readonly nodes: readonly NodeRecord[];
  readonly trial: Canary | null;
}

/** The parts of an explanation that only images have. */
export type ImageParts = ReturnType<typeof imageParts>;

/** Builds with their uploads, the trial, and what each builder says, for programs. */
export function imageParts(known: Known, builders: readonly BuilderLine[]) {
  const { builds, trial } = known;
  return {
    builds: builds.map((build) => buildOf(build, known)),
    trial: trial && trialOf(trial),
    builders,
  };
}

function buildOf({ image, record }: ListedBuild, { uploads, nodes, trial }: Known) {
  const { id, state, stateTime, builder, formats } = record;
  const root = `${paths.imageBuild(image, id)}/`;
  const rejected = trial?.rejected.includes(id) === true ? ("rolled-back" as const) : null;
  return {
    id,
    state,
    since: isoOf(stateTime),
    builder,
    formats,
    /** Null: it is not on trial, and was not rolled back. */
    trial: trial?.candidate === id ? ("on-trial" as const) : rejected,
    /** How many boot or booted from it: the record of a node has the path of the upload that it was made of. */
    nodes: nodes.filter(({ imageId }) => imageId?.startsWith(root)).length,
    uploads: uploads
      .filter(({ build }) => build === id)
      .map(({ provider, record: upload }) => ({
        provider,
        id: upload.id,
        state: upload.state,
        since: isoOf(upload.stateTime),
        external_id: upload.externalId,
      })),
  };
}

function trialOf({ candidate, since, share, tallies, rejected, last }: Canary) {
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
