import { isObject } from "./fields.ts";
import { clientOf, leaseIdOf } from "./lease.ts";
import type { NodePatch, NodeRecord } from "./node.ts";
import { withOwn } from "./price.ts";

/** A tenant, and one of its clients. */
export interface NodeUser {
  readonly tenant: string | null;
  readonly client: string;
}

/** What the record of a node says of being used again. It is written when the node becomes ready for the first time. */
export interface ReuseNote {
  /** Digest of the settings by which it was launched. */
  readonly settings: string;
  /** When it was ready for the first time: tree time, seconds. */
  readonly since: number;
  /** How often it was given back and began to be checked. */
  readonly times: number;
  /** Who alone may have it; null: everybody. */
  readonly only: NodeUser | null;
  /** Its check is under way: it may be in any state, and nobody may have it. */
  readonly checking: boolean;
  /** Up to when its cost was counted, with its last user: tree time, seconds; null: it had none. */
  readonly counted: number | null;
}

/** What is read of a note that makes no sense: nobody gets the node, and it is deleted when it is free. */
const NOBODYS: ReuseNote = {
  ...{ settings: "", since: 0, times: Number.MAX_SAFE_INTEGER, checking: false, counted: null },
  only: { tenant: null, client: "" },
};

/** Undefined: the node is never used again. */
export function reuseOf({ driverData }: Pick<NodeRecord, "driverData">): ReuseNote | undefined {
  const own = isObject(driverData) && isObject(driverData.nodeyard) ? driverData.nodeyard.reuse : undefined;
  if (!isObject(own)) return undefined;
  const { settings, since, times, only, checking, counted } = own;
  const user = readUser(only);
  if (typeof settings !== "string" || typeof since !== "number" || user === undefined) return NOBODYS;
  if (!Number.isSafeInteger(times)) return NOBODYS;
  const note = { settings, since, times: times as number, only: user, checking: checking === true };
  return { ...note, counted: typeof counted === "number" ? counted : null };
}

/** Undefined for what cannot be read. */
function readUser(value: unknown): NodeUser | null | undefined {
  if (value === null || value === undefined) return null;
  if (!isObject(value) || typeof value.client !== "string") return undefined;
  const { tenant, client } = value;
  return tenant === null || typeof tenant === "string" ? { tenant, client } : undefined;
}

/** Sets the note in `driver_data`. How the last user gave the node back, and since when it had it, is not said of the next one. */
export function withReuse(driverData: unknown, note: ReuseNote): unknown {
  const { only, checking, counted, ...always } = note;
  const reuse = {
    ...always,
    ...(only && { only }),
    ...(checking && { checking }),
    ...(counted !== null && { counted }),
  };
  return withOwn(driverData, { reuse, returned: undefined, given_at: undefined });
}

/** Nothing of the user that had a node stays in its record. */
export const withoutUser = {
  allocatedTo: null,
  tenantName: null,
  requestor: null,
  userData: null,
  comment: null,
  holdJob: null,
  holdExpiration: null,
} as const satisfies NodePatch;

/** Who had a node that was given back; undefined: it is not known, or was a client of one time only. */
export function userOf({
  tenantName,
  requestor,
  userData,
}: Pick<NodeRecord, "tenantName" | "requestor" | "userData">): NodeUser | undefined {
  const client = clientOf(requestor, userData);
  // A lease without a known owner is nobody's second.
  return client === null || leaseIdOf(client) !== undefined ? undefined : { tenant: tenantName, client };
}
