import { type Fields, odd, text } from "./fields.ts";
import { type ImageFields, imageKind, type OwnFields } from "./image-kind.ts";
import { changeRecord, decodeRecord, encodeRecord, newRecord, type Stored, stamped } from "./record-kind.ts";

export const imageBuildStates = ["building", "ready", "deleting", "failed"] as const;
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

const own: Fields<OwnFields<ImageBuildFields>> = {
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

const kind = imageKind<ImageBuildState, ImageBuildFields>("image build", imageBuildStates, own);

/** @throws RecordError for what cannot be handled */
export function decodeImageBuild(id: string, data: Uint8Array): ImageBuildRecord {
  return decodeRecord(kind, id, data);
}

export type ImageBuildPatch = Partial<Omit<ImageBuildFields, "stateTime">>;

/** Setting `state` sets `stateTime`, even to the same value: of a ready build it is the time of completion. */
export function changeImageBuild(
  record: ImageBuildRecord,
  patch: ImageBuildPatch,
  nowSeconds: number,
): ImageBuildRecord {
  return changeRecord(kind, record, stamped<ImageBuildFields>(patch, nowSeconds));
}

/** A build that begins: who can log in, and how, is known when it ends (docs/contract/records.md, "Image build"). */
export function newImageBuild(
  id: string,
  values: Pick<ImageBuildFields, "builder" | "builderId" | "formats">,
  nowSeconds: number,
): ImageBuildRecord {
  return newRecord(kind, id, {
    ...values,
    formats: [...values.formats].sort(),
    state: "building",
    stateTime: nowSeconds,
    username: null,
    pythonPath: null,
    shellType: null,
  });
}

export function encodeImageBuild(record: ImageBuildRecord): Uint8Array {
  return encodeRecord(kind, record);
}
