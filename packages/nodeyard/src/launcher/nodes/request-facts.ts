import type { RequestFacts } from "@nodeyard/driver";
import type { HeldRequest } from "../fence/records.ts";

/** What drivers get to know of a request. */
export function requestFacts({ id, record }: HeldRequest): RequestFacts {
  return {
    id,
    labels: record.nodeTypes,
    requestor: record.requestor,
    requestorData: record.requestorData,
    relativePriority: record.relativePriority,
    eventId: record.eventId,
    createdTime: record.createdTime,
    tenantName: record.tenantName,
  };
}
