import {
  anything,
  type Field,
  type Fields,
  numberOrNull,
  odd,
  oneOf,
  optional,
  text,
  type ValuesOf,
} from "./fields.ts";
import {
  blankOf,
  changeRecord,
  decodeRecord,
  encodeRecord,
  newRecord,
  type RecordKind,
  type Stored,
  stamped,
} from "./record-kind.ts";

/** Fields that builds and uploads share, with the defaults of Nodepool's readers (docs/contract/records.md, "Image build"). */
function fieldsOf<State extends string, Own>(states: readonly State[], failed: State, own: Own) {
  return {
    state: optional<State>("state", failed, oneOf(...states)),
    /** Seconds since the epoch. */
    stateTime: optional("state_time", null, numberOrNull),
    ...own,
    /** How to log in to machines that are made from the image. */
    username: optional("username", "zuul", text),
    pythonPath: optional("python_path", "/usr/bin/python2", text),
    shellType: optional("shell_type", null, text),
  };
}

function kindOf<T extends object>(name: string, states: readonly string[], fields: Fields<T>): RecordKind<T> {
  return { name, states, fields, blank: blankOf(name, fields), mandatory: new Map() };
}

/** All states of a build. */
export const imageBuildStates = ["building", "ready", "deleting", "failed"] as const;
/** A state of a build. */
export type ImageBuildState = (typeof imageBuildStates)[number];

// A list in memory; the record has one string with commas.
const formats: Field<readonly string[]> = {
  key: "formats",
  missing: [],
  read: (value) => (typeof value === "string" ? value.split(",").filter((name) => name !== "") : odd),
  write: (names) => [...names].sort().join(","),
};
const buildFields = fieldsOf(imageBuildStates, "failed", {
  /** Host name of the builder. */
  builder: optional("builder", null, text),
  builderId: optional("builder_id", null, text),
  formats,
});
const build = kindOf("image build", imageBuildStates, buildFields);

/** A build of a diskimage (docs/contract/records.md, "Image build"). */
export type ImageBuildFields = ValuesOf<typeof buildFields>;
/** `id` is the build id: 32 hexadecimal digits, or ten digits for builds of old Nodepool builders. */
export type ImageBuildRecord = ImageBuildFields & Stored;

/** @throws RecordError for a record that cannot be used */
export function decodeImageBuild(id: string, data: Uint8Array): ImageBuildRecord {
  return decodeRecord(build, id, data);
}

/** Changes to a build. `stateTime` is set by `changeImageBuild`. */
export type ImageBuildPatch = Partial<Omit<ImageBuildFields, "stateTime">>;

/** Setting `state` also sets `stateTime`, even to the same value. For a ready build it is the time of completion. */
export function changeImageBuild(
  record: ImageBuildRecord,
  patch: ImageBuildPatch,
  nowSeconds: number,
): ImageBuildRecord {
  return changeRecord(build, record, stamped<ImageBuildFields>(patch, nowSeconds));
}

/** The record of a build that starts. The login fields stay null until it ends (docs/contract/records.md, "Image build"). */
export function newImageBuild(
  id: string,
  values: Pick<ImageBuildFields, "builder" | "builderId" | "formats">,
  nowSeconds: number,
): ImageBuildRecord {
  return newRecord(build, id, {
    ...values,
    formats: [...values.formats].sort(),
    state: "building",
    stateTime: nowSeconds,
    username: null,
    pythonPath: null,
    shellType: null,
  });
}

/** The bytes to store. Unknown keys stay as they were read (rule 7). */
export function encodeImageBuild(record: ImageBuildRecord): Uint8Array {
  return encodeRecord(build, record);
}

/** All states of an upload. */
export const imageUploadStates = ["uploading", "ready", "deleting", "failed"] as const;
/** A state of an upload. */
export type ImageUploadState = (typeof imageUploadStates)[number];

const uploadFields = fieldsOf(imageUploadStates, "failed", {
  /** The cloud's id of the image: a string, or an object when the driver needs more than one value. */
  externalId: optional("external_id", null, anything),
  externalName: optional("external_name", null, text),
  format: optional("format", null, text),
});
const upload = kindOf("image upload", imageUploadStates, uploadFields);

/** An upload of a build to a provider (docs/contract/records.md, "Image upload"). Its path names image, build, provider and number. */
export type ImageUploadFields = ValuesOf<typeof uploadFields>;
/** `id` is the upload's number: ten digits, unique per build and provider. */
export type ImageUploadRecord = ImageUploadFields & Stored;

/** @throws RecordError for a record that cannot be used */
export function decodeImageUpload(id: string, data: Uint8Array): ImageUploadRecord {
  return decodeRecord(upload, id, data);
}

/** Changes to an upload. `stateTime` is set by `changeImageUpload`. */
export type ImageUploadPatch = Partial<Omit<ImageUploadFields, "stateTime">>;

/** Setting `state` also sets `stateTime`, by which launchers find the newest image. */
export function changeImageUpload(
  record: ImageUploadRecord,
  patch: ImageUploadPatch,
  nowSeconds: number,
): ImageUploadRecord {
  return changeRecord(upload, record, stamped<ImageUploadFields>(patch, nowSeconds));
}

/** The record of an upload that starts. All of its keys are always present (docs/contract/records.md, "Image upload"). */
export function newImageUpload(
  values: Pick<ImageUploadFields, "username" | "pythonPath" | "shellType">,
  nowSeconds: number,
): ImageUploadRecord {
  return newRecord(upload, "", { ...values, state: "uploading", stateTime: nowSeconds });
}

/** The bytes to store. Unknown keys stay as they were read (rule 7). */
export function encodeImageUpload(record: ImageUploadRecord): Uint8Array {
  return encodeRecord(upload, record);
}
