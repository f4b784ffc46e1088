import type { RequestRecord } from "@nodeyard/model";
import { type Column, columns, type Row } from "./columns.ts";

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

export const labelColumns: readonly Column[] = columns({ Label: "label" });

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
