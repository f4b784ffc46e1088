import { RecordError } from "./errors.ts";
import {
  anything,
  bool,
  number,
  numberOrNull,
  oneOf,
  optional,
  text,
  texts,
  type ValuesOf,
  words,
} from "./fields.ts";
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

/** What min-ready requests of any launcher carry as requestor (docs/contract/launcher.md, "min-ready"). */
export const MIN_READY = "NodePool:min-ready";

const fields = {
  state: optional<RequestState>("state", "requested", oneOf(...requestStates)),
  stateTime: optional("state_time", null, numberOrNull),
  /** Launcher-pool ids. */
  declinedBy: optional<readonly string[]>("declined_by", [], texts),
  /** Labels wanted; order matters, duplicates mean several. Strict: a request for "nothing" would be fulfilled at once. */
  nodeTypes: { ...optional<readonly string[]>("node_types", [], words), strict: true },
  /** Node ids, in the order of `nodeTypes`, once it is fulfilled. */
  nodes: optional<readonly string[]>("nodes", [], texts),
  /** May nodes that are ready already be used? */
  reuse: optional<boolean>("reuse", true, bool),
  requestor: optional("requestor", null, text),
  /** Opaque. */
  requestorData: optional("requestor_data", null, anything),
  /** The provider that is preferred. */
  provider: optional("provider", null, text),
  /** Lower first. */
  relativePriority: optional("relative_priority", 0, number),
  eventId: optional("event_id", null, text),
  createdTime: optional("created_time", null, numberOrNull),
  tenantName: optional("tenant_name", null, text),
};

/** Fields of a node request (docs/contract/records.md, "Node request"). Times are seconds since the epoch. */
export type RequestFields = ValuesOf<typeof fields>;
/** A request as it is stored: its fields, and the text that they came from. */
export type RequestRecord = RequestFields & Stored;
/** What may be changed of a request; the time of its state follows. */
export type RequestPatch = Partial<Omit<RequestFields, "stateTime">>;
/** A request to be created; what is left out has its default. */
export type NewRequest = RequestPatch & { readonly id?: string };

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
