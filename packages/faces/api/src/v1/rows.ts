import {
  deadLetterPath,
  decodeLease,
  decodeRemark,
  LEASES,
  type Lease,
  leaseIdOf,
  leasePath,
  type NodeRecord,
  type RequestRecord,
  readable,
  remarkPath,
} from "@nodeyard/model";
import { iso, isoOf } from "@nodeyard/operations";
import { nodeFacts, type Row } from "@nodeyard/operations/listing";
import type { ComponentEntry, NodeEntry, OwnEntry, View } from "@nodeyard/view";
import { redacted } from "../redacted.ts";
import { type Principal, seesSecrets, seesTenant } from "./principal.ts";

/** A node's row; undefined when the caller may not see it. Ages are given as points in time, so that a row changes only with its node. */
export function nodeOf(
  { record, contenders }: NodeEntry,
  { own }: Pick<View, "own">,
  principal: Principal,
): Row | undefined {
  if (!seesTenant(principal, tenantOf(record))) return undefined;
  const row = nodeFacts({ record, deadLetter: own.has(deadLetterPath(record.id)) });
  const shown = seesSecrets(principal) ? row : redacted(row);
  return {
    ...shown,
    az: record.az,
    since: isoOf(record.stateTime),
    locked: contenders.length > 0,
    tenant: tenantOf(record),
    interface_ip: record.interfaceIp,
    connection_type: record.connectionType,
    host_keys: record.hostKeys,
    remark: remarkIn(own.get(remarkPath(record.id))),
  };
}

/** What a driver last said of the machine; null: nothing. */
function remarkIn(entry: OwnEntry | undefined): Row | null {
  if (entry === undefined) return null;
  const { at, text } = decodeRemark(entry.data);
  return { at: iso(at), text };
}

/** The current tenant. The record of a deallocated node keeps the name of the last one. */
function tenantOf({ allocatedTo, tenantName }: NodeRecord): string | null {
  return allocatedTo === null ? null : tenantName;
}

/** A request's row; undefined when the caller may not see it. */
export function requestOf(record: RequestRecord, principal: Principal): Row | undefined {
  if (!seesTenant(principal, record.tenantName)) return undefined;
  return {
    id: record.id,
    state: record.state,
    since: isoOf(record.stateTime),
    created: isoOf(record.createdTime),
    labels: record.nodeTypes,
    nodes: record.nodes,
    requestor: record.requestor,
    lease: leaseIdOf(record.requestor) ?? null,
    tenant: record.tenantName,
    relative_priority: record.relativePriority,
    declined_by: record.declinedBy,
    event_id: record.eventId,
  };
}

/** A lease that the caller may see. */
export function leaseIn(view: View, id: string, principal: Principal): Lease | undefined {
  const entry = view.own.get(leasePath(id));
  const lease = entry && leaseFrom(entry);
  return lease !== undefined && seesLease(principal, lease) ? lease : undefined;
}

/** Undefined for another record, and for a lease that cannot be read. */
export function leaseFrom({ path, data }: OwnEntry): Lease | undefined {
  if (!path.startsWith(`${LEASES}/`)) return undefined;
  return readable(() => decodeLease(path.slice(LEASES.length + 1), data));
}

/** A client sees its own leases, and those of tenants that it sees. */
export function seesLease(principal: Principal, { owner, tenant }: Lease): boolean {
  return owner === principal.name || seesTenant(principal, tenant);
}

/** A lease's row. `until`: when its nodes are returned in any case; of a lease without heartbeats that is its expiry. */
export function leaseRowOf(lease: Lease): Row {
  const { created, expires, until, heartbeat, ...rest } = lease;
  return {
    ...rest,
    created: iso(created),
    expires: iso(expires),
    until: iso(until ?? expires),
    heartbeat_seconds: heartbeat === null ? null : heartbeat / 1_000,
  };
}

/** A diskimage's row; undefined when the tree does not have the image. */
export function imageRowOf({ images }: View, image: string): Row | undefined {
  const facts = images.get(image);
  return (
    facts && {
      image,
      paused: facts.paused,
      build_requested: images.requested(image),
      builds: facts.builds,
      uploaded_to: [...facts.ready.keys()].sort(),
      uploading_to: [...facts.uploading].sort(),
    }
  );
}

/** A pool's row, one for each launcher that serves it. */
export function poolRowOf({ key, record }: ComponentEntry): Row {
  return {
    id: key,
    provider: record.providerName,
    pool: record.name,
    launcher: record.hostname,
    state: record.state,
    labels: record.supportedLabels,
    priority: record.priority,
    paused: record.paused,
  };
}

/** The row of a launcher or builder process. */
export function memberRowOf({ key, kind, record: { hostname, state, version } }: ComponentEntry): Row {
  return { id: key, kind, hostname, state, version };
}

/** Counts by state; a caller with limits sees its own nodes and the ready ones that any request may get. */
export function countStates(view: View, ids: Iterable<string>, principal: Principal): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const id of ids) {
    const record = view.nodes.byId.get(id)?.record;
    if (record === undefined) continue;
    const { state, allocatedTo, tenantName } = record;
    const isFree = state === "ready" && allocatedTo === null;
    // A ready node that no request has is of no tenant: any request may get it.
    if (isFree || seesTenant(principal, allocatedTo === null ? null : tenantName))
      counts[state] = (counts[state] ?? 0) + 1;
  }
  return counts;
}

/** Pools of launchers of both kinds, Nodepool's and Nodeyard's. */
export function poolsIn(view: View): readonly ComponentEntry[] {
  return [...view.components.values()].filter(({ kind }) => kind === "pool");
}
