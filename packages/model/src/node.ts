import {
  anything,
  type Fields,
  isObject,
  jsonText,
  object,
  odd,
  readSound,
  seconds,
  text,
  texts,
} from "./fields.ts";
import { parseDamaged } from "./json/parse.ts";
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
import { type NodeState, nodeStates } from "./states.ts";

type JsonObject = Readonly<Record<string, unknown>>;

/** Fields of a node (docs/contract/records.md, "Node"). Times are seconds since the epoch. */
export interface NodeFields {
  readonly state: NodeState;
  readonly stateTime: number | null;
  readonly provider: string | null;
  readonly pool: string | null;
  /** Labels: one for a launched node, all of the host's for a static one. */
  readonly type: readonly string[];
  /** Launcher-pool id, or "static driver". */
  readonly launcher: string | null;
  /** The request that the node is for. */
  readonly allocatedTo: string | null;
  readonly tenantName: string | null;
  readonly requestor: string | null;
  readonly createdTime: number | null;
  readonly cloud: string | null;
  readonly region: string | null;
  readonly az: string | null;
  readonly hostId: string | null;
  readonly externalId: string | JsonObject | null;
  readonly hostname: string | null;
  readonly publicIpv4: string | null;
  readonly privateIpv4: string | null;
  readonly publicIpv6: string | null;
  readonly interfaceIp: string | null;
  readonly connectionType: string | null;
  /** A number, or for Kubernetes an object with address and token. `ssh_port` is kept the same. */
  readonly connectionPort: number | JsonObject | null;
  readonly username: string | null;
  readonly pythonPath: string | null;
  readonly shellType: string | null;
  /** "<type> <base64>"; never null, because Zuul iterates it. */
  readonly hostKeys: readonly string[];
  readonly imageId: string | null;
  readonly attributes: JsonObject | null;
  readonly resources: Readonly<Record<string, number>> | null;
  readonly slot: number | null;
  readonly driverData: unknown;
  readonly userData: unknown;
  readonly comment: string | null;
  readonly holdJob: string | null;
  /** A duration in seconds from `stateTime`; 0 means no expiry. */
  readonly holdExpiration: number | null;
}

/** A node as it is stored: its fields, and the text that they came from. */
export type NodeRecord = NodeFields & Stored;
/** What may be changed of a node; the time of its state follows. */
export type NodePatch = Partial<Omit<NodeFields, "stateTime">>;
/** A node to be created; what is left out has its default. */
export type NewNode = NodePatch & { readonly id?: string };

const DEFAULT_PORT = 22;
const states: ReadonlySet<unknown> = new Set(nodeStates);
const optionalText = (key: string) => ({ key, missing: null, read: text });

const fields: Fields<NodeFields> = {
  provider: { ...optionalText("provider"), strict: true },
  pool: { ...optionalText("pool"), strict: true },
  type: {
    key: "type",
    missing: [],
    read: (value, note) => {
      if (typeof value === "string" && value !== "") return [value];
      return value === null || value === "" ? [] : texts(value, note);
    },
  },
  launcher: optionalText("launcher"),
  // The default would make the node anybody's.
  allocatedTo: { ...optionalText("allocated_to"), strict: true },
  state: { key: "state", missing: "init", read: (value) => (states.has(value) ? (value as NodeState) : odd) },
  stateTime: { key: "state_time", missing: null, read: seconds },
  createdTime: { key: "created_time", missing: null, read: seconds },
  externalId: {
    key: "external_id",
    missing: null,
    read: (value) => (typeof value === "string" || value === null || isObject(value) ? value : odd),
  },
  cloud: optionalText("cloud"),
  region: optionalText("region"),
  az: optionalText("az"),
  hostId: optionalText("host_id"),
  hostname: optionalText("hostname"),
  publicIpv4: optionalText("public_ipv4"),
  privateIpv4: optionalText("private_ipv4"),
  publicIpv6: optionalText("public_ipv6"),
  interfaceIp: optionalText("interface_ip"),
  connectionType: optionalText("connection_type"),
  connectionPort: {
    key: "connection_port",
    missing: DEFAULT_PORT,
    read: (value) => (isInteger(value) || value === null || isObject(value) ? value : odd),
  },
  username: { key: "username", missing: "zuul", read: text },
  pythonPath: optionalText("python_path"),
  shellType: optionalText("shell_type"),
  hostKeys: {
    key: "host_keys",
    missing: [],
    read: (value, note) => (value === null ? [] : texts(value, note)),
  },
  imageId: optionalText("image_id"),
  attributes: { key: "attributes", missing: null, read: object },
  resources: { key: "resources", missing: null, read: readResources },
  slot: { key: "slot", missing: null, read: (value) => (isInteger(value) || value === null ? value : odd) },
  driverData: { key: "driver_data", missing: null, read: anything },
  userData: { key: "user_data", missing: null, read: anything },
  tenantName: optionalText("tenant_name"),
  requestor: optionalText("requestor"),
  comment: optionalText("comment"),
  holdJob: optionalText("hold_job"),
  holdExpiration: { key: "hold_expiration", missing: null, read: readHoldExpiration },
};

const kind: RecordKind<NodeFields> = {
  name: "node",
  states: nodeStates,
  fields,
  shape: shapeOf(fields),
  mandatory: new Map([["host_keys", "[]"]]),
};

/** @throws RecordError for what cannot be handled; odd optional fields never throw (see `oddities`) */
export function decodeNode(id: string, data: Uint8Array): NodeRecord {
  return decodeRecord(kind, id, data, portAlias);
}

/** What can be read of a node whose record `decodeNode` refuses; never throws. */
export function readableNode(data: Uint8Array): Partial<NodeFields> {
  return readSound(fields, portAlias(parseDamaged(data) ?? {}));
}

/**
 * A copy with `patch` in it; members that are undefined are left alone. Setting `state` sets `stateTime` to `nowSeconds`,
 * even to the same value.
 *
 * @throws RecordError `record.bad_field` when a value cannot be written as JSON
 */
export function changeNode(record: NodeRecord, patch: NodePatch, nowSeconds: number): NodeRecord {
  const changes = stamped<NodeFields>(patch, nowSeconds);
  if (patch.connectionPort === undefined) return changeRecord(kind, record, changes);
  return changeRecord(kind, record, changes, sshPort(record.id, patch.connectionPort));
}

/** The bytes to store; unknown keys stay as they were read. */
export function encodeNode(record: NodeRecord): Uint8Array {
  return encodeRecord(kind, record);
}

/** A node to be created; its id is empty until the tree has given one. */
export function newNode(values: NewNode, nowSeconds: number): NodeRecord {
  const { id = "", ...given } = values;
  const createdTime = given.createdTime ?? nowSeconds;
  const fresh = newRecord(kind, id, { ...given, createdTime, stateTime: nowSeconds });
  return changeRecord(kind, fresh, {}, sshPort(id, fresh.connectionPort));
}

/** Readers of old records look at `ssh_port`. */
function sshPort(id: string, port: NodeFields["connectionPort"]): ReadonlyMap<string, string> {
  return new Map([["ssh_port", jsonText(`node ${id}`, "ssh_port", port)]]);
}

/** Records from before `connection_port` only have the alias. */
function portAlias(raw: JsonObject): JsonObject {
  return raw.connection_port === undefined && raw.ssh_port !== undefined
    ? { ...raw, connection_port: raw.ssh_port }
    : raw;
}

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function readResources(
  value: unknown,
  note: () => void,
): Readonly<Record<string, number>> | null | typeof odd {
  if (value === null) return null;
  if (!isObject(value)) return odd;
  const amounts = Object.entries(value).filter(
    (entry): entry is [string, number] => Number.isFinite(entry[1]) && (entry[1] as number) >= 0,
  );
  if (amounts.length === Object.keys(value).length) return value as Record<string, number>;
  note();
  return Object.fromEntries(amounts);
}

/** As Nodepool reads it: a number or a numeral becomes an integer, any other text 0, "no expiry". */
function readHoldExpiration(value: unknown, note: () => void): number | null | typeof odd {
  if (value === null) return null;
  if (typeof value === "number" && Number.isFinite(value)) return Math.trunc(value);
  if (typeof value === "string" && /^\s*[+-]?\d{1,15}\s*$/.test(value)) return Number(value);
  note();
  return 0;
}
