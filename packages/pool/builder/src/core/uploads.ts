import type { ImageBuildRecord, ImageUploadRecord } from "@nodeyard/model";
import { newestFirst, timeOf, tryAgainAt } from "./when.ts";

/** An upload with the build that it is of. */
export interface UploadAtBuild {
  readonly build: string;
  readonly record: ImageUploadRecord;
}

/** What the choice of an upload depends on: one image, one provider, this host. */
export interface UploadFacts {
  /** Milliseconds of tree time. */
  readonly now: number;
  /** All builds of the image. */
  readonly builds: Iterable<ImageBuildRecord>;
  /** Uploads of the image to this provider. */
  readonly uploads: readonly UploadAtBuild[];
  /** Formats on this host, by build id. */
  readonly local: ReadonlyMap<string, readonly string[]>;
  /** The provider's formats, the preferred one first. */
  readonly formats: readonly string[];
  readonly paused: boolean;
}

/** An upload to make, or why there is none. */
export type UploadChoice =
  | {
      readonly upload: true;
      readonly build: string;
      readonly format: string;
      /** The number of the upload to resume; undefined: a new upload. */
      readonly resume: string | undefined;
    }
  | {
      readonly upload: false;
      readonly why: "paused" | "no-build" | "elsewhere" | "done" | "no-format" | "back-off";
      /** When to look again; undefined: when something changes. */
      readonly at?: number;
    };

/** For so long the host of the newest build has the first right to upload it, milliseconds. */
const FIRST_RIGHT_MS = 10 * 60_000;

/** How long after its start an upload may be resumed, milliseconds. After that it is settled, and another one begins. */
const RESUME_MS = 6 * 3_600_000;

/**
 * Whether an abandoned upload can be resumed, because its driver stored a checkpoint. An id alone is no checkpoint; such an upload starts
 * again.
 */
export function isResumable(record: ImageUploadRecord, now: number): boolean {
  const { state, externalId } = record;
  const hasCheckpoint = typeof externalId === "object" && externalId !== null;
  return state === "uploading" && hasCheckpoint && now - timeOf(record) < RESUME_MS;
}

/**
 * What this host uploads of an image to one provider (docs/contract/builder.md, "Uploads"): the newest ready build, if its file is on
 * this host. An older build only if the newest has not been uploaded for a long time and the provider has no build as new.
 */
export function whatToUpload(facts: UploadFacts): UploadChoice {
  const { now, local, uploads } = facts;
  if (facts.paused) return { upload: false, why: "paused" };
  const ready = newestFirst(facts.builds).filter(({ state }) => state === "ready");
  const [newest] = ready;
  if (newest === undefined) return { upload: false, why: "no-build" };
  const here = ready.find(({ id }) => local.has(id));
  if (here === undefined) return { upload: false, why: "elsewhere" };
  const asNew = ready.slice(0, ready.indexOf(here) + 1).map(({ id }) => id);
  if (uploads.some(({ build, record }) => record.state === "ready" && asNew.includes(build)))
    return { upload: false, why: "done" };
  if (here !== newest) {
    const at = timeOf(newest) + FIRST_RIGHT_MS;
    if (at > now) return { upload: false, why: "elsewhere", at };
  }
  const files = local.get(here.id)!;
  const format = facts.formats.find((name) => here.formats.includes(name) && files.includes(name));
  if (format === undefined) return { upload: false, why: "no-format" };
  const failed = newestFirst(
    uploads
      .filter(({ build, record }) => build === here.id && record.state === "failed")
      .map(({ record }) => record),
  );
  const at = tryAgainAt(failed, now);
  if (at > now) return { upload: false, why: "back-off", at };
  const left = uploads.filter(({ build, record }) => build === here.id && isResumable(record, now));
  const resume = left
    .map(({ record }) => record.id)
    .sort()
    .at(-1);
  return { upload: true, build: here.id, format, resume };
}
