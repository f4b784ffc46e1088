import { anything, type Fields, text } from "./fields.ts";
import { type ImageFields, imageKind, type OwnFields } from "./image-kind.ts";
import { changeRecord, decodeRecord, encodeRecord, newRecord, type Stored, stamped } from "./record-kind.ts";

export const imageUploadStates = ["uploading", "ready", "deleting", "failed"] as const;
export type ImageUploadState = (typeof imageUploadStates)[number];

/** A build at a provider (docs/contract/records.md, "Image upload"). Image, build, provider and number are in its path. */
export interface ImageUploadFields extends ImageFields<ImageUploadState> {
  /** The cloud's id of the image: a string, or an object where one string is not enough. */
  readonly externalId: unknown;
  readonly externalName: string | null;
  readonly format: string | null;
}

/** `id` is the upload's number: ten digits, unique for one build at one provider. */
export type ImageUploadRecord = ImageUploadFields & Stored;

const own: Fields<OwnFields<ImageUploadFields>> = {
  externalId: { key: "external_id", missing: null, read: anything },
  externalName: { key: "external_name", missing: null, read: text },
  format: { key: "format", missing: null, read: text },
};

const kind = imageKind<ImageUploadState, ImageUploadFields>("image upload", imageUploadStates, own);

/** @throws RecordError for what cannot be handled */
export function decodeImageUpload(id: string, data: Uint8Array): ImageUploadRecord {
  return decodeRecord(kind, id, data);
}

export type ImageUploadPatch = Partial<Omit<ImageUploadFields, "stateTime">>;

/** Setting `state` sets `stateTime`, by which launchers find the newest image. */
export function changeImageUpload(
  record: ImageUploadRecord,
  patch: ImageUploadPatch,
  nowSeconds: number,
): ImageUploadRecord {
  return changeRecord(kind, record, stamped<ImageUploadFields>(patch, nowSeconds));
}

/** An upload that begins; all its keys are always present (docs/contract/records.md, "Image upload"). */
export function newImageUpload(
  values: Pick<ImageUploadFields, "username" | "pythonPath" | "shellType">,
  nowSeconds: number,
): ImageUploadRecord {
  return newRecord(kind, "", { ...values, state: "uploading", stateTime: nowSeconds });
}

export function encodeImageUpload(record: ImageUploadRecord): Uint8Array {
  return encodeRecord(kind, record);
}
