import type { NodeRecord } from "@nodeyard/model";
import { age, type Column, columns, type Row } from "../listing/index.ts";
import type { Lease } from "../operations/index.ts";
import { labelsText } from "./arguments.ts";

export const leaseColumns: readonly Column[] = [
  ...columns({ Lease: "id", State: "state", Owner: "owner" }),
  // A lease of a thousand nodes is one line that can be read.
  { heading: "Labels", key: "labels", show: ({ labels }) => labelsText(labels as readonly string[]) },
  ...columns({ Request: "request" }),
  { heading: "Nodes", key: "nodes", show: ({ nodes }) => some(nodes as readonly string[]) },
  ...columns({ "Time Left": "time_left" }),
];

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

/** A few names whole; of many the first and the last. */
function some(names: readonly string[]): string {
  return names.length <= 5 ? names.join(",") : `${names[0]} ... ${names.at(-1)} (${names.length})`;
}
