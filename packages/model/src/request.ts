import { RecordError } from "./errors.ts";
import { anything, type Fields, odd, seconds, text, texts } from "./fields.ts";
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
import { parseRequestId } from "./request-id.ts";
import { type RequestState, requestStates } from "./states.ts";

/** Fields of a node request (docs/contract/records.md, "Node request"). Times are seconds since the epoch. */
export interface RequestFields {
  readonly state: RequestState;
  readonly stateTime: number | null;
  /** Launcher-pool ids. */
  readonly declinedBy: readonly string[];
  /** Labels wanted; order matters, duplicates mean several. */
  readonly nodeTypes: readonly string[];
  /** Node ids, in the order of `nodeTypes`, once it is fulfilled. */
  readonly nodes: readonly string[];
  /** May nodes that are ready already be used? */
  readonly reuse: boolean;
  readonly requestor: string | null;
  /** Opaque. */
  readonly requestorData: unknown;
  /** The provider that is preferred. */
  readonly provider: string | null;
  /** Lower first. */
  readonly relativePriority: number;
  readonly eventId: string | null;
  readonly createdTime: number | null;
  readonly tenantName: string | null;
}

/** A request as it is stored: its fields, and the text that they came from. */
export type RequestRecord = RequestFields & Stored;

/** What min-ready requests of any launcher carry as requestor (docs/contract/launcher.md, "min-ready"). */
export const MIN_READY = "NodePool:min-ready";

/** What may be changed of a request; the time of its state follows. */
export type RequestPatch = Partial<Omit<RequestFields, "stateTime">>;
/** A request to be created; what is left out has its default. */
export type NewRequest = RequestPatch & { readonly id?: string };

const states: ReadonlySet<unknown> = new Set(requestStates);

const fields: Fields<RequestFields> = {
  state: {
    key: "state",
    missing: "requested",
    read: (value) => (states.has(value) ? (value as RequestState) : odd),
  },
  stateTime: { key: "state_time", missing: null, read: seconds },
  declinedBy: { key: "declined_by", missing: [], read: texts },
  nodeTypes: {
    key: "node_types",
    missing: [],
    // A request for "nothing" would be fulfilled at once: better not to understand it.
    strict: true,
    read: (value) => (Array.isArray(value) && value.every((item) => typeof item === "string") ? value : odd),
  },
  nodes: { key: "nodes", missing: [], read: texts },
  reuse: { key: "reuse", missing: true, read: (value) => (typeof value === "boolean" ? value : odd) },
  requestor: { key: "requestor", missing: null, read: text },
  requestorData: { key: "requestor_data", missing: null, read: anything },
  provider: { key: "provider", missing: null, read: text },
  relativePriority: {
    key: "relative_priority",
    missing: 0,
    read: (value) => (typeof value === "number" && Number.isFinite(value) ? value : odd),
  },
  eventId: { key: "event_id", missing: null, read: text },
  createdTime: { key: "created_time", missing: null, read: seconds },
  tenantName: { key: "tenant_name", missing: null, read: text },
};

/** Keys without which Zuul fails on a request that we wrote back (docs/contract/zuul.md, "Reading"). */
const mandatory: ReadonlyMap<string, string> = new Map([
  ["state_time", "null"],
  ["event_id", "null"],
  ["requestor", "null"],
  ["requestor_data", "null"],
  ["node_types", "[]"],
  ["provider", "null"],
]);

const kind: RecordKind<RequestFields> = {
  name: "request",
  states: requestStates,
  fields,
  mandatory,
  shape: shapeOf(fields),
};

/** @throws RecordError for what cannot be handled; odd optional fields never throw (see `oddities`) */
export function decodeRequest(id: string, data: Uint8Array): RequestRecord {
  if (parseRequestId(id) === undefined) {
    throw new RecordError("record.bad_id", `request ${id}: its name is not <priority>-<sequence>`);
  }
  return decodeRecord(kind, id, data);
}

/**
 * A copy with `patch` in it; members that are undefined are left alone. Setting `state` sets `stateTime` to `nowSeconds`,
 * even to the same value.
 *
 * @throws RecordError `record.bad_field` when a value cannot be written as JSON
 */
export function changeRequest(record: RequestRecord, patch: RequestPatch, nowSeconds: number): RequestRecord {
  return changeRecord(kind, record, stamped<RequestFields>(patch, nowSeconds));
}

/** The bytes to store; unknown keys stay as they were read. */
export function encodeRequest(record: RequestRecord): Uint8Array {
  return encodeRecord(kind, record);
}

/** A request to be created; its id is empty until the tree has given one. */
export function newRequest(values: NewRequest, nowSeconds: number): RequestRecord {
  const { id = "", ...given } = values;
  return newRecord(kind, id, {
    ...given,
    createdTime: given.createdTime === undefined ? nowSeconds : given.createdTime,
    stateTime: nowSeconds,
  });
}
