import {
  anything,
  isObject,
  jsonText,
  numberOrNull,
  object,
  odd,
  oneOf,
  optional,
  readSound,
  text,
  texts,
  type ValuesOf,
} from "./fields.ts";
import { parseDamaged } from "./json/parse.ts";
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
import { type NodeState, nodeStates } from "./states.ts";

type JsonObject = Readonly<Record<string, unknown>>;

const DEFAULT_PORT = 22;

const fields = {
  provider: { ...optional("provider", null, text), strict: true },
  pool: { ...optional("pool", null, text), strict: true },
  /** Labels: one for a launched node, all labels of the host for a static node. */
  type: optional<readonly string[]>("type", [], (value, note) => {
    if (typeof value === "string" && value !== "") return [value];
    return value === null || value === "" ? [] : texts(value, note);
  }),
  /** Launcher-pool id, or "static driver". */
  launcher: optional("launcher", null, text),
  /** The request that the node belongs to. Strict, because the default would make the node free for every request. */
  allocatedTo: { ...optional("allocated_to", null, text), strict: true },
  state: optional<NodeState>("state", "init", oneOf(...nodeStates)),
  stateTime: optional("state_time", null, numberOrNull),
  createdTime: optional("created_time", null, numberOrNull),
  externalId: optional<string | JsonObject | null>("external_id", null, (value) =>
    typeof value === "string" || value === null || isObject(value) ? value : odd,
  ),
  cloud: optional("cloud", null, text),
  region: optional("region", null, text),
  az: optional("az", null, text),
  hostId: optional("host_id", null, text),
  hostname: optional("hostname", null, text),
  publicIpv4: optional("public_ipv4", null, text),
  privateIpv4: optional("private_ipv4", null, text),
  publicIpv6: optional("public_ipv6", null, text),
  interfaceIp: optional("interface_ip", null, text),
  connectionType: optional("connection_type", null, text),
  /** A number, or for Kubernetes an object with address and token. `ssh_port` always has the same value. */
  connectionPort: optional<number | JsonObject | null>("connection_port", DEFAULT_PORT, (value) =>
    isInteger(value) || value === null || isObject(value) ? value : odd,
  ),
  username: optional("username", "zuul", text),
  pythonPath: optional("python_path", null, text),
  shellType: optional("shell_type", null, text),
  /** Items are "<type> <base64>". Never null in the record, because Zuul iterates over it. */
  hostKeys: optional<readonly string[]>("host_keys", [], (value, note) =>
    value === null ? [] : texts(value, note),
  ),
  imageId: optional("image_id", null, text),
  attributes: optional("attributes", null, object),
  resources: optional("resources", null, readResources),
  slot: optional<number | null>("slot", null, (value) => (isInteger(value) || value === null ? value : odd)),
  driverData: optional("driver_data", null, anything),
  userData: optional("user_data", null, anything),
  tenantName: optional("tenant_name", null, text),
  requestor: optional("requestor", null, text),
  comment: optional("comment", null, text),
  holdJob: optional("hold_job", null, text),
  /** A duration in seconds from `stateTime`; 0 means no expiry. */
  holdExpiration: optional("hold_expiration", null, readHoldExpiration),
};

/** Fields of a node (docs/contract/records.md, "Node"). Times are seconds since the epoch. */
export type NodeFields = ValuesOf<typeof fields>;
/** A stored node: its fields, and the JSON text that they were read from. */
export type NodeRecord = NodeFields & Stored;
/**
 * What `hold_job` says of a suspended spare. In the state `hold` no launcher gives it to anybody or deletes it at once, also one that does not
 * know of spares, and it counts against quotas (docs/design/spares.md).
 */
const SUSPENDED = "nodeyard:suspended";

/** The fields of a suspended spare: within a week it is woken, or deleted by whatever launcher there is. */
export const suspendedPatch = {
  ...{ state: "hold", holdJob: SUSPENDED, comment: "a suspended spare of Nodeyard" },
  holdExpiration: 7 * 86_400,
} as const satisfies NodePatch;

/** Whether a node is a spare that a request may have once it is woken. */
export function isSuspended({ state, holdJob }: Pick<NodeFields, "state" | "holdJob">): boolean {
  return state === "hold" && holdJob === SUSPENDED;
}

/** Changes to a node. `stateTime` is set by `changeNode`. */
export type NodePatch = Partial<Omit<NodeFields, "stateTime">>;
/** Values of a node to be created; missing ones get their defaults. */
export type NewNode = NodePatch & { readonly id?: string };

const kind: RecordKind<NodeFields> = {
  name: "node",
  states: nodeStates,
  fields,
  blank: blankOf("node", fields, sshPort("", DEFAULT_PORT)),
  mandatory: new Map([["host_keys", "[]"]]),
};

/** @throws RecordError for a record that cannot be used; invalid optional fields never throw (see `oddities`) */
export function decodeNode(id: string, data: Uint8Array): NodeRecord {
  return decodeRecord(kind, id, data, portAlias);
}

/** The readable fields of a node whose record `decodeNode` refuses. Never throws. */
export function readableNode(data: Uint8Array): Partial<NodeFields> {
  return readSound(fields, portAlias(parseDamaged(data) ?? {}));
}

/**
 * A copy with the members of `patch`; undefined members change nothing. Setting `state` sets `stateTime` to `nowSeconds`,
 * even to the same value.
 *
 * @throws RecordError `record.bad_field` when a value cannot be written as JSON
 */
export function changeNode(record: NodeRecord, patch: NodePatch, nowSeconds: number): NodeRecord {
  const changes = stamped<NodeFields>(patch, nowSeconds);
  return changeRecord(kind, record, changes, sshPort(record.id, changes.connectionPort));
}

/** The bytes to store. Unknown keys stay as they were read (rule 7). */
export function encodeNode(record: NodeRecord): Uint8Array {
  return encodeRecord(kind, record);
}

/** The record of a node to be created. Its id is empty until the tree assigns one. */
export function newNode(values: NewNode, nowSeconds: number): NodeRecord {
  const { id = "", ...given } = values;
  const createdTime = given.createdTime ?? nowSeconds;
  const all = { ...given, createdTime, stateTime: nowSeconds };
  return newRecord(kind, id, all, sshPort(id, given.connectionPort));
}

/** Old readers of the record use `ssh_port`. Undefined: the port is not changed. */
function sshPort(
  id: string,
  port: NodeFields["connectionPort"] | undefined,
): ReadonlyMap<string, string> | undefined {
  return port === undefined ? undefined : new Map([["ssh_port", jsonText(`node ${id}`, "ssh_port", port)]]);
}

/** Records from before `connection_port` was introduced have only `ssh_port`. */
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

/** As Nodepool reads it: a number or numeric string becomes an integer; any other string becomes 0, "no expiry". */
function readHoldExpiration(value: unknown, note: () => void): number | null | typeof odd {
  if (value === null) return null;
  if (typeof value === "number" && Number.isFinite(value)) return Math.trunc(value);
  if (typeof value === "string" && /^\s*[+-]?\d{1,15}\s*$/.test(value)) return Number(value);
  note();
  return 0;
}
