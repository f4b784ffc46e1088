import type { NodeRecord, RequestRecord } from "@nodeyard/model";
import { type Lease, type ListedNode, slotPlace } from "../operations/index.ts";
import { labelsText } from "./arguments.ts";
import { age } from "./table.ts";

/** One column: its heading, and its key in `--json`, which is the old web API's (spec operations.md 1 and 2). */
export interface Column {
  readonly heading: string;
  readonly key: string;
  /** What people see in place of the value. */
  readonly show?: (row: Row) => string;
}

export type Row = Readonly<Record<string, unknown>>;

export const nodeColumns: readonly Column[] = columns({
  ID: "id",
  Provider: "provider",
  Label: "label",
  "Server ID": "server_id",
  "Public IPv4": "public_ipv4",
  IPv6: "ipv6",
  State: "state",
  Age: "age",
  Locked: "locked",
});

export const nodeDetailColumns: readonly Column[] = [
  ...nodeColumns,
  ...columns({
    Pool: "pool",
    Hostname: "hostname",
    "Private IPv4": "private_ipv4",
    AZ: "AZ",
    Username: "username",
    Port: "connection_port",
    Launcher: "launcher",
    "Allocated To": "allocated_to",
    "Hold Job": "hold_job",
    Comment: "comment",
    "User Data": "user_data",
    "Driver Data": "driver_data",
    "Backing Node": "backing_node",
    Slot: "slot",
    "Dead Letter": "dead_letter",
  }),
];

export const requestColumns: readonly Column[] = columns({
  "Request ID": "id",
  Priority: "relative_priority",
  State: "state",
  Requestor: "requestor",
  "Node Types": "node_types",
  Nodes: "nodes",
  "Declined By": "declined_by",
  "Event ID": "event_id",
});

export const leaseColumns: readonly Column[] = [
  ...columns({ Lease: "id", State: "state", Owner: "owner" }),
  // A lease of a thousand nodes is one line that can be read.
  { heading: "Labels", key: "labels", show: ({ labels }) => labelsText(labels as readonly string[]) },
  ...columns({ Request: "request" }),
  { heading: "Nodes", key: "nodes", show: ({ nodes }) => some(nodes as readonly string[]) },
  ...columns({ "Time Left": "time_left" }),
];

/** Everything that `--detail` shows; `now` is tree time in milliseconds. */
export function nodeRow({ record, locked, deadLetter }: ListedNode, now: number): Row {
  return {
    id: record.id,
    provider: record.provider,
    label: record.type,
    server_id: record.externalId,
    public_ipv4: record.publicIpv4,
    ipv6: record.publicIpv6,
    state: record.state,
    age: record.stateTime === null ? null : age(now / 1000 - record.stateTime),
    locked: locked ? "locked" : "unlocked",
    pool: record.pool,
    hostname: record.hostname,
    private_ipv4: record.privateIpv4,
    AZ: record.az,
    username: record.username,
    // An object here holds a cluster's credentials.
    connection_port: typeof record.connectionPort === "number" ? record.connectionPort : "redacted",
    launcher: record.launcher,
    allocated_to: record.allocatedTo,
    hold_job: record.holdJob,
    comment: record.comment,
    user_data: record.userData,
    driver_data: record.driverData,
    backing_node: slotPlace(record)?.backing ?? null,
    slot: record.slot,
    dead_letter: deadLetter,
  };
}

export function requestRow(record: RequestRecord): Row {
  return {
    id: record.id,
    relative_priority: record.relativePriority,
    state: record.state,
    requestor: record.requestor,
    node_types: record.nodeTypes,
    nodes: record.nodes,
    declined_by: record.declinedBy,
    event_id: record.eventId,
  };
}

export function leaseRow(lease: Lease, now: number): Row {
  return {
    id: lease.id,
    state: lease.state,
    owner: lease.owner,
    labels: lease.labels,
    request: lease.request,
    nodes: lease.nodes,
    time_left: age((lease.expires - now) / 1000),
    expires: new Date(lease.expires).toISOString(),
  };
}

/** What a client needs to use a node, as `request --json` gives it. */
export function accessRow(record: NodeRecord): Row {
  return {
    id: record.id,
    label: record.type,
    provider: record.provider,
    interface_ip: record.interfaceIp,
    connection_type: record.connectionType,
    connection_port: typeof record.connectionPort === "number" ? record.connectionPort : null,
    username: record.username,
    host_keys: record.hostKeys,
  };
}

export function pick(row: Row, wanted: readonly Column[]): Row {
  return Object.fromEntries(wanted.map(({ key }) => [key, row[key] ?? null]));
}

/** A few names whole; of many the first and the last. */
function some(names: readonly string[]): string {
  return names.length <= 5 ? names.join(",") : `${names[0]} ... ${names.at(-1)} (${names.length})`;
}

function columns(headings: Readonly<Record<string, string>>): readonly Column[] {
  return Object.entries(headings).map(([heading, key]) => ({ heading, key }));
}
