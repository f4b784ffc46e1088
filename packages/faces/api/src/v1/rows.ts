import {
  deadLetterPath,
  decodeLease,
  decodeRemark,
  LEASES,
  type Lease,
  leasePath,
  type RequestRecord,
  readable,
  remarkPath,
} from "@nodeyard/model";
import {
  boolean,
  counts,
  type Fields,
  leaseFields,
  maybe,
  nodeFields,
  nodeTenant,
  number,
  type Row,
  requestFields,
  rowOf,
  text,
  texts,
} from "@nodeyard/operations/listing";
import type { ComponentEntry, NodeEntry, OwnEntry, View } from "@nodeyard/view";
import { redacted } from "../redacted.ts";
import { type Principal, seesSecrets, seesTenant } from "./principal.ts";

/** A node's row; undefined when the caller may not see it. Ages are given as points in time, so that a row changes only with its node. */
export function nodeOf(
  { record, contenders }: NodeEntry,
  { own }: Pick<View, "own">,
  principal: Principal,
): Row | undefined {
  if (!seesTenant(principal, nodeTenant(record))) return undefined;
  const remark = own.get(remarkPath(record.id));
  const row = rowOf(nodeFields, {
    record,
    locked: contenders.length > 0,
    deadLetter: own.has(deadLetterPath(record.id)),
    remark: remark && decodeRemark(remark.data),
  });
  return seesSecrets(principal) ? row : redacted(row);
}

/** A request's row; undefined when the caller may not see it. */
export function requestOf(record: RequestRecord, principal: Principal): Row | undefined {
  return seesTenant(principal, record.tenantName) ? rowOf(requestFields, record) : undefined;
}

/** A lease that the caller may see. */
export function leaseIn(view: View, id: string, principal: Principal): Lease | undefined {
  const entry = view.own.get(leasePath(id));
  return entry && leaseFrom(entry, principal);
}

/**
 * Undefined for another record, for a lease that cannot be read, and for one that the caller may not see: a client sees its own leases, and those
 * of tenants that it sees.
 */
function leaseFrom({ path, data }: OwnEntry, principal: Principal): Lease | undefined {
  if (!path.startsWith(`${LEASES}/`)) return undefined;
  const lease = readable(() => decodeLease(path.slice(LEASES.length + 1), data));
  if (lease === undefined) return undefined;
  return lease.owner === principal.name || seesTenant(principal, lease.tenant) ? lease : undefined;
}

/** The row of the lease in this record; undefined where that is none that the caller may see. */
export function leaseOf(entry: OwnEntry, principal: Principal): Row | undefined {
  const lease = leaseFrom(entry, principal);
  return lease && rowOf(leaseFields, lease);
}

/** A diskimage that the tree knows. */
interface Image {
  readonly name: string;
  readonly images: View["images"];
  readonly facts: NonNullable<ReturnType<View["images"]["get"]>>;
}

/** A diskimage, for programs. */
export const imageFields: Fields<Image> = {
  image: [text, ({ name }) => name],
  paused: [boolean, ({ facts }) => facts.paused],
  build_requested: [boolean, ({ name, images }) => images.requested(name)],
  builds: [counts, ({ facts }) => facts.builds],
  uploaded_to: [texts, ({ facts }) => [...facts.ready.keys()].sort()],
  uploading_to: [texts, ({ facts }) => [...facts.uploading].sort()],
};

/** A diskimage's row; undefined when the tree does not have the image. */
export function imageOf({ images }: View, name: string): Row | undefined {
  const facts = images.get(name);
  return facts && rowOf(imageFields, { name, images, facts });
}

/** A pool, for programs: one for each launcher that serves it. */
export const poolFields: Fields<ComponentEntry> = {
  id: [text, ({ key }) => key],
  provider: [maybe, ({ record }) => record.providerName],
  pool: [maybe, ({ record }) => record.name],
  launcher: [text, ({ record }) => record.hostname],
  state: [text, ({ record }) => record.state],
  labels: [texts, ({ record }) => record.supportedLabels],
  priority: [number, ({ record }) => record.priority],
  paused: [boolean, ({ record }) => record.paused],
};

/** A launcher or builder process, for programs. */
export const memberFields: Fields<ComponentEntry> = {
  id: [text, ({ key }) => key],
  kind: [text, ({ kind }) => kind],
  hostname: [text, ({ record }) => record.hostname],
  state: [text, ({ record }) => record.state],
  version: [maybe, ({ record }) => record.version],
};

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
