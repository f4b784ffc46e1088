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

/** What builds and uploads have alike. Times are seconds since the epoch. */
interface ImageFields<State extends string> {
  readonly state: State;
  readonly stateTime: number | null;
  /** How machines made of the image are logged in to. */
  readonly username: string | null;
  readonly pythonPath: string | null;
  readonly shellType: string | null;
}

/** The members that one kind has beside those of all, each as the record has it. */
type OwnFields<T> = Omit<T, keyof ImageFields<string>>;

/** A kind of image record: the defaults of what is missing are old readers' (docs/contract/records.md, "Image build"). */
function imageKind<State extends string, T extends ImageFields<State>>(
  name: string,
  states: readonly State[],
  own: Fields<OwnFields<T>>,
): RecordKind<T> {
  const known: ReadonlySet<unknown> = new Set(states);
  const fields = {
    state: {
      key: "state",
      missing: "failed",
      read: (value: unknown) => (known.has(value) ? value : odd),
    },
    stateTime: { key: "state_time", missing: null, read: seconds },
    ...own,
    username: { key: "username", missing: "zuul", read: text },
    pythonPath: { key: "python_path", missing: "/usr/bin/python2", read: text },
    shellType: { key: "shell_type", missing: null, read: text },
  } as unknown as Fields<T>;
  return { name, states, fields, shape: shapeOf(fields as Fields<object>), mandatory: new Map() };
}

/** All states of a build. */
export const imageBuildStates = ["building", "ready", "deleting", "failed"] as const;
/** A state of a build. */
export type ImageBuildState = (typeof imageBuildStates)[number];

/** A diskimage that a builder makes or made (docs/contract/records.md, "Image build"). */
export interface ImageBuildFields extends ImageFields<ImageBuildState> {
  /** Host name of the builder. */
  readonly builder: string | null;
  readonly builderId: string | null;
  readonly formats: readonly string[];
}

/** `id` is the build id: 32 hexadecimal digits, or ten digits where an old builder made it. */
export type ImageBuildRecord = ImageBuildFields & Stored;

const ownOfBuild: Fields<OwnFields<ImageBuildFields>> = {
  builder: { key: "builder", missing: null, read: text },
  builderId: { key: "builder_id", missing: null, read: text },
  // A list in our hands, one text with commas in the record.
  formats: {
    key: "formats",
    missing: [],
    read: (value) => (typeof value === "string" ? value.split(",").filter((name) => name !== "") : odd),
    write: (formats) => [...formats].sort().join(","),
  },
};

const build = imageKind<ImageBuildState, ImageBuildFields>("image build", imageBuildStates, ownOfBuild);

/** @throws RecordError for what cannot be handled */
export function decodeImageBuild(id: string, data: Uint8Array): ImageBuildRecord {
  return decodeRecord(build, id, data);
}

/** What may be changed of a build; the time of its state follows. */
export type ImageBuildPatch = Partial<Omit<ImageBuildFields, "stateTime">>;

/** Setting `state` sets `stateTime`, even to the same value: of a ready build it is the time of completion. */
export function changeImageBuild(
  record: ImageBuildRecord,
  patch: ImageBuildPatch,
  nowSeconds: number,
): ImageBuildRecord {
  return changeRecord(build, record, stamped<ImageBuildFields>(patch, nowSeconds));
}

/** A build that begins: who can log in, and how, is known when it ends (docs/contract/records.md, "Image build"). */
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

/** The bytes to store; unknown keys stay as they were read. */
export function encodeImageBuild(record: ImageBuildRecord): Uint8Array {
  return encodeRecord(build, record);
}

/** All states of an upload. */
export const imageUploadStates = ["uploading", "ready", "deleting", "failed"] as const;
/** A state of an upload. */
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

const ownOfUpload: Fields<OwnFields<ImageUploadFields>> = {
  externalId: { key: "external_id", missing: null, read: anything },
  externalName: { key: "external_name", missing: null, read: text },
  format: { key: "format", missing: null, read: text },
};

const upload = imageKind<ImageUploadState, ImageUploadFields>("image upload", imageUploadStates, ownOfUpload);

/** @throws RecordError for what cannot be handled */
export function decodeImageUpload(id: string, data: Uint8Array): ImageUploadRecord {
  return decodeRecord(upload, id, data);
}

/** What may be changed of an upload; the time of its state follows. */
export type ImageUploadPatch = Partial<Omit<ImageUploadFields, "stateTime">>;

/** Setting `state` sets `stateTime`, by which launchers find the newest image. */
export function changeImageUpload(
  record: ImageUploadRecord,
  patch: ImageUploadPatch,
  nowSeconds: number,
): ImageUploadRecord {
  return changeRecord(upload, record, stamped<ImageUploadFields>(patch, nowSeconds));
}

/** An upload that begins; all its keys are always present (docs/contract/records.md, "Image upload"). */
export function newImageUpload(
  values: Pick<ImageUploadFields, "username" | "pythonPath" | "shellType">,
  nowSeconds: number,
): ImageUploadRecord {
  return newRecord(upload, "", { ...values, state: "uploading", stateTime: nowSeconds });
}

/** The bytes to store; unknown keys stay as they were read. */
export function encodeImageUpload(record: ImageUploadRecord): Uint8Array {
  return encodeRecord(upload, record);
}
