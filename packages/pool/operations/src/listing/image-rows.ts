import type { Canary } from "@nodeyard/model";
import {
  type ImageStatus,
  type ListedBuild,
  type ListedUpload,
  type OperationHandles,
  treeNow,
} from "../index.ts";
import { type Column, columns, type Row } from "./columns.ts";
import { type AgeFormat, ageIn } from "./table.ts";

/** Columns of `image-list`, with Nodepool's headings and keys. */
export const uploadColumns = columns({
  "Build ID": "id",
  "Upload ID": "upload_id",
  Provider: "provider",
  Image: "image",
  "Provider Image Name": "external_name",
  "Provider Image ID": "external_id",
  State: "state",
  Age: "age",
});

/** Columns of `dib-image-list`, with Nodepool's headings and keys. */
export const buildColumns: readonly Column[] = [
  ...columns({ ID: "id", Image: "image", Builder: "builder", Formats: "formats" }),
  // The old command line shows the pause in place of the state.
  {
    heading: "State",
    key: "state",
    show: ({ state, paused }) => (paused === true ? `paused (${state})` : `${state}`),
  },
  ...columns({ Age: "age" }),
];

/** Columns of `image-status`, with Nodepool's headings and keys. */
export const imageColumns = columns({
  Image: "image",
  Paused: "paused",
  "Build Request": "build_request",
  "Build Request Age": "build_request_age",
});

/** A line of `image-list`. `ages`: how times are written. */
export function uploadRow(
  { image, build, provider, record }: ListedUpload,
  handles: OperationHandles,
  ages: AgeFormat,
): Row {
  return {
    id: build,
    upload_id: record.id,
    provider,
    image,
    external_name: record.externalName,
    external_id: record.externalId,
    state: record.state,
    age: ageOf(record.stateTime, handles, ages),
  };
}

/** A line of `dib-image-list`. `ages`: how times are written. Its `id` has the image's name before it, as Nodepool prints builds. */
export function buildRow(
  { image, record, paused }: ListedBuild,
  handles: OperationHandles,
  ages: AgeFormat,
): Row {
  return {
    id: `${image}-${record.id}`,
    image,
    builder: record.builder,
    formats: record.formats,
    state: record.state,
    paused,
    age: ageOf(record.stateTime, handles, ages),
  };
}

/** The column that `image-status` has besides Nodepool's. */
export const trialColumn: Column = { heading: "Trial", key: "trial" };

/** A line of `image-status`. `now`: tree time, milliseconds; `ages`: how times are written. */
export function imageRow({ image, paused, request, canary }: ImageStatus, now: number, ages: AgeFormat): Row {
  return {
    image,
    paused,
    build_request: request?.state ?? null,
    build_request_age: ageAt(request?.at ?? null, now, ages),
    trial: canary === null ? null : trialText(canary),
    canary,
  };
}

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

/** The age of a record's state; null where the record has no time. */
function ageOf(seconds: number | null, handles: OperationHandles, ages: AgeFormat): string | number | null {
  return ageAt(seconds, treeNow(handles), ages);
}

/** The age at `now`, tree milliseconds, of a time in seconds; with "epoch" the time itself. */
function ageAt(seconds: number | null, now: number, ages: AgeFormat): string | number | null {
  if (seconds === null || ages === "epoch") return seconds && Math.floor(seconds);
  return ageIn(ages, now / 1000 - seconds);
}
