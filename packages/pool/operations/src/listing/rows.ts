import { costOf, type NodeRecord, priceOf, type RequestRecord, slotPlace } from "@nodeyard/model";
import type { ListedNode } from "../index.ts";
import { type Column, columns, type Row } from "./columns.ts";
import { type AgeFormat, ageIn } from "./table.ts";

/** Columns of `list`, with Nodepool's headings and keys. Their order is that of the table. */
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

/** All that the old web application and `list --detail` show of a node. */
export const oldNodeColumns: readonly Column[] = [
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
  }),
];

/** Columns of `list --detail`: Nodepool's, and those of slots and dead letters. */
export const nodeDetailColumns: readonly Column[] = [
  ...oldNodeColumns,
  ...columns({
    "Backing Node": "backing_node",
    Slot: "slot",
    "Dead Letter": "dead_letter",
  }),
];

/** Everything that `--detail` shows; `now` is tree time in milliseconds. */
export function nodeRow(node: ListedNode, now: number, ages: Exclude<AgeFormat, "epoch"> = "text"): Row {
  const { stateTime, az } = node.record;
  return {
    ...nodeFacts(node),
    age: stateTime === null ? null : ageIn(ages, now / 1000 - stateTime),
    locked: node.locked ? "locked" : "unlocked",
    AZ: az,
  };
}

/** What every list of nodes calls by the same names, and that changes with the node only. */
export function nodeFacts({ record, deadLetter }: Pick<ListedNode, "record" | "deadLetter">) {
  return {
    id: record.id,
    provider: record.provider,
    label: record.type,
    server_id: record.externalId,
    public_ipv4: record.publicIpv4,
    ipv6: record.publicIpv6,
    state: record.state,
    pool: record.pool,
    hostname: record.hostname,
    private_ipv4: record.privateIpv4,
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
    cost: costOf(priceOf(record)),
  };
}

/** Columns of `request-list`, with Nodepool's headings and keys. */
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

/** Columns of the list of labels over HTTP. */
export const labelColumns: readonly Column[] = columns({ Label: "label" });

/** A line of `request-list`. */
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

/**
 * What a client needs to use a node, as `request --json` gives it. A port that is an object holds credentials of a cluster, so it is
 * null here.
 */
export function accessRow(
  record: Pick<
    NodeRecord,
    "id" | "type" | "provider" | "interfaceIp" | "connectionType" | "connectionPort" | "username" | "hostKeys"
  >,
): Row {
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
