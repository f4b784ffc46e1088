import { isObject } from "./fields.ts";
import { leaseIdOf } from "./lease.ts";
import type { NodeRecord } from "./node.ts";
import { withOwn } from "./price.ts";

/** How the user of a node gave it back: "well" says that its job ended well. */
export type Returned = "well" | "back";

/**
 * How a node was given back; undefined: it was taken from its user, or never had one. A client with a session, as Zuul is, says no more than
 * `used`. For leases, `withReturned` wrote it, because an expired one is `used`, too.
 */
export function returnedOf({
  driverData,
  state,
  requestor,
}: Pick<NodeRecord, "driverData" | "state" | "requestor">): Returned | undefined {
  const own =
    isObject(driverData) && isObject(driverData.nodeyard) ? driverData.nodeyard.returned : undefined;
  if (own === "well" || own === "back") return own;
  return state === "used" && leaseIdOf(requestor) === undefined ? "back" : undefined;
}

/** Adds that to `driver_data`. */
export function withReturned(driverData: unknown, returned: Returned): unknown {
  return withOwn(driverData, { returned });
}
