import { anything, type Fields, odd, seconds, text } from "./fields.ts";
import {
  changeRecord,
  decodeRecord,
  encodeRecord,
  newRecord,
  type RecordKind,
  type Stored,
  shapeOf,
  stamped,
} from "./record-kind.ts";

export const imageUploadStates = ["uploading", "ready", "deleting", "failed"] as const;
export type ImageUploadState = (typeof imageUploadStates)[number];

/** A build at a provider (spec zookeeper.md 2.5). Image, build, provider and number are in its path. */
export interface ImageUploadFields {
  readonly state: ImageUploadState;
  readonly stateTime: number | null;
  /** The cloud's id of the image: a string, or an object where one string is not enough. */
  readonly externalId: unknown;
  readonly externalName: string | null;
  readonly format: string | null;
  readonly username: string | null;
  readonly pythonPath: string | null;
  readonly shellType: string | null;
}

/** `id` is the upload's number: ten digits, unique for one build at one provider. */
export type ImageUploadRecord = ImageUploadFields & Stored;

const states: ReadonlySet<unknown> = new Set(imageUploadStates);

const fields: Fields<ImageUploadFields> = {
  state: {
    key: "state",
    missing: "failed",
    read: (value) => (states.has(value) ? (value as ImageUploadState) : odd),
  },
  stateTime: { key: "state_time", missing: null, read: seconds },
  externalId: { key: "external_id", missing: null, read: anything },
  externalName: { key: "external_name", missing: null, read: text },
  format: { key: "format", missing: null, read: text },
  username: { key: "username", missing: "zuul", read: text },
  pythonPath: { key: "python_path", missing: "/usr/bin/python2", read: text },
  shellType: { key: "shell_type", missing: null, read: text },
};

const kind: RecordKind<ImageUploadFields> = {
  name: "image upload",
  states: imageUploadStates,
  fields,
  shape: shapeOf(fields),
  mandatory: new Map(),
};

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

/** An upload that begins; all its keys are always present (spec builder.md 3). */
export function newImageUpload(
  values: Pick<ImageUploadFields, "username" | "pythonPath" | "shellType">,
  nowSeconds: number,
): ImageUploadRecord {
  return newRecord(kind, "", { ...values, state: "uploading", stateTime: nowSeconds });
}

export function encodeImageUpload(record: ImageUploadRecord): Uint8Array {
  return encodeRecord(kind, record);
}
