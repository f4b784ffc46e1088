import { type Fields, odd, seconds, text } from "./fields.ts";
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

export const imageBuildStates = ["building", "ready", "deleting", "failed"] as const;
export type ImageBuildState = (typeof imageBuildStates)[number];

/** A diskimage that a builder makes or made (spec zookeeper.md 2.4, builder.md 3). Times are seconds since the epoch. */
export interface ImageBuildFields {
  readonly state: ImageBuildState;
  readonly stateTime: number | null;
  /** Host name of the builder. */
  readonly builder: string | null;
  readonly builderId: string | null;
  readonly formats: readonly string[];
  readonly username: string | null;
  readonly pythonPath: string | null;
  readonly shellType: string | null;
}

/** `id` is the build id: 32 hexadecimal digits, or ten digits where an old builder made it. */
export type ImageBuildRecord = ImageBuildFields & Stored;

const states: ReadonlySet<unknown> = new Set(imageBuildStates);

const fields: Fields<ImageBuildFields> = {
  state: {
    key: "state",
    missing: "failed",
    read: (value) => (states.has(value) ? (value as ImageBuildState) : odd),
  },
  stateTime: { key: "state_time", missing: null, read: seconds },
  builder: { key: "builder", missing: null, read: text },
  builderId: { key: "builder_id", missing: null, read: text },
  // A list in our hands, one text with commas in the record.
  formats: {
    key: "formats",
    missing: [],
    read: (value) => (typeof value === "string" ? value.split(",").filter((name) => name !== "") : odd),
    write: (formats) => [...formats].sort().join(","),
  },
  username: { key: "username", missing: "zuul", read: text },
  pythonPath: { key: "python_path", missing: "/usr/bin/python2", read: text },
  shellType: { key: "shell_type", missing: null, read: text },
};

const kind: RecordKind<ImageBuildFields> = {
  name: "image build",
  states: imageBuildStates,
  fields,
  shape: shapeOf(fields),
  mandatory: new Map(),
};

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

/** A build that begins: who can log in, and how, is known when it ends (spec zookeeper.md 2.4). */
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
