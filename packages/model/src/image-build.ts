import { type Fields, odd, seconds, text } from "./fields.ts";
import { decodeRecord, type RecordKind, type Stored, shapeOf } from "./record-kind.ts";

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
