import type { RequestFacts } from "../contract.ts";

/** A request by the names that templates use. */
export function requestFields(request: RequestFacts): Readonly<Record<string, unknown>> {
  return {
    id: request.id,
    labels: request.labels,
    requestor: request.requestor,
    requestor_data: request.requestorData,
    relative_priority: request.relativePriority,
    event_id: request.eventId,
    created_time: request.createdTime,
    tenant_name: request.tenantName,
  };
}
