import type { Canary } from "@nodeyard/model";
import {
  type ImageStatus,
  type ListedBuild,
  type ListedUpload,
  type OperationHandles,
  treeNow,
} from "../operations/index.ts";
import { type Column, columns, type Row } from "./columns.ts";
import { age } from "./table.ts";

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
export const buildColumns = columns({
  ID: "id",
  Image: "image",
  Builder: "builder",
  Formats: "formats",
  State: "state",
  Age: "age",
});

/** Columns of `image-status`, with Nodepool's headings and keys. */
export const imageColumns = columns({
  Image: "image",
  Paused: "paused",
  "Build Request": "build_request",
  "Build Request Age": "build_request_age",
});

/** A line of `image-list`. `json`: times as numbers, for programs. */
export function uploadRow(
  { image, build, provider, record }: ListedUpload,
  handles: OperationHandles,
  json: boolean,
): Row {
  return {
    id: build,
    upload_id: record.id,
    provider,
    image,
    external_name: record.externalName,
    external_id: record.externalId,
    state: record.state,
    age: ageOf(record.stateTime, handles, json),
  };
}

/** People see "paused" where the old command line shows it; `--json` has the state as it is, and the pause beside it. */
export function buildRow(
  { image, record, paused }: ListedBuild,
  handles: OperationHandles,
  json: boolean,
): Row {
  return {
    id: `${image}-${record.id}`,
    image,
    builder: record.builder,
    formats: record.formats,
    state: paused && !json ? `paused (${record.state})` : record.state,
    paused,
    age: ageOf(record.stateTime, handles, json),
  };
}

/** The column that `image-status` has besides Nodepool's. */
export const trialColumn: Column = { heading: "Trial", key: "trial" };

/** A line of `image-status`. `json`: times as numbers, for programs. */
export function imageRow(
  { image, paused, request, canary }: ImageStatus,
  handles: OperationHandles,
  json: boolean,
): Row {
  return {
    image,
    paused,
    build_request: request?.state ?? null,
    build_request_age: ageOf(request?.at ?? null, handles, json),
    trial: canary === null ? null : trialText(canary),
    canary,
  };
}

/** What goes on, else how the last one ended and why. */
function trialText({ candidate, tallies, share, last }: Canary): string | null {
  if (candidate !== null) {
    const { boots, failed } = tallies.candidate;
    return `${candidate.slice(0, 8)} gets ${Math.round(share * 100)} %: ${boots} booted, ${failed} failed`;
  }
  return last && `${last.build.slice(0, 8)} ${last.verdict}: ${last.why}`;
}

/** In JSON the second of the change, as the old web API has it under this name (docs/contract/operations.md, "Old web lists"). */
function ageOf(seconds: number | null, handles: OperationHandles, json: boolean): string | number | null {
  if (seconds === null) return null;
  return json ? Math.floor(seconds) : age(treeNow(handles) / 1000 - seconds);
}
