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
  blankOf,
  changeRecord,
  decodeRecord,
  encodeRecord,
  newRecord,
  type RecordKind,
  type Stored,
  stamped,
} from "./record-kind.ts";
import { parseRequestId } from "./request-id.ts";
import { type RequestState, requestStates } from "./states.ts";

/** Requestor of min-ready requests, the same for all launchers (docs/contract/launcher.md, "min-ready"). */
export const MIN_READY = "NodePool:min-ready";

const fields = {
  state: optional<RequestState>("state", "requested", oneOf(...requestStates)),
  stateTime: optional("state_time", null, numberOrNull),
  /** Launcher-pool ids. */
  declinedBy: optional<readonly string[]>("declined_by", [], texts),
  /** Wanted labels; the order matters, duplicates ask for several nodes. Strict, because an empty request would be fulfilled at once. */
  nodeTypes: { ...optional<readonly string[]>("node_types", [], words), strict: true },
  /** Ids of the nodes in the order of `nodeTypes`, once the request is fulfilled. */
  nodes: optional<readonly string[]>("nodes", [], texts),
  /** Whether nodes that are ready already may be used. */
  reuse: optional<boolean>("reuse", true, bool),
  requestor: optional("requestor", null, text),
  /** Opaque. */
  requestorData: optional("requestor_data", null, anything),
  /** The preferred provider. */
  provider: optional("provider", null, text),
  /** Lower numbers are served first. */
  relativePriority: optional("relative_priority", 0, number),
  eventId: optional("event_id", null, text),
  createdTime: optional("created_time", null, numberOrNull),
  tenantName: optional("tenant_name", null, text),
};

/** Fields of a node request (docs/contract/records.md, "Node request"). Times are seconds since the epoch. */
export type RequestFields = ValuesOf<typeof fields>;
/** A stored request: its fields, and the JSON text that they were read from. */
export type RequestRecord = RequestFields & Stored;
/** Changes to a request. `stateTime` is set by `changeRequest`. */
export type RequestPatch = Partial<Omit<RequestFields, "stateTime">>;
/** Values of a request to be created; missing ones get their defaults. */
export type NewRequest = RequestPatch & { readonly id?: string };

/** Keys without which Zuul fails to read a request that Nodeyard has written (docs/contract/zuul.md, "Reading"). */
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
  blank: blankOf("request", fields),
};

/** @throws RecordError for a record that cannot be used; invalid optional fields never throw (see `oddities`) */
export function decodeRequest(id: string, data: Uint8Array): RequestRecord {
  if (parseRequestId(id) === undefined) {
    throw new RecordError("record.bad_id", `request ${id}: its name is not <priority>-<sequence>`);
  }
  return decodeRecord(kind, id, data);
}

/**
 * A copy with the members of `patch`; undefined members change nothing. Setting `state` sets `stateTime` to `nowSeconds`,
 * even to the same value.
 *
 * @throws RecordError `record.bad_field` when a value cannot be written as JSON
 */
export function changeRequest(record: RequestRecord, patch: RequestPatch, nowSeconds: number): RequestRecord {
  return changeRecord(kind, record, stamped<RequestFields>(patch, nowSeconds));
}

/** The bytes to store. Unknown keys stay as they were read (rule 7). */
export function encodeRequest(record: RequestRecord): Uint8Array {
  return encodeRecord(kind, record);
}

/** The record of a request to be created. Its id is empty until the tree assigns one. */
export function newRequest(values: NewRequest, nowSeconds: number): RequestRecord {
  const { id = "", ...given } = values;
  return newRecord(kind, id, {
    ...given,
    createdTime: given.createdTime === undefined ? nowSeconds : given.createdTime,
    stateTime: nowSeconds,
  });
}
