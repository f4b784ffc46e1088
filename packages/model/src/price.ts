import { isObject } from "./fields.ts";
import type { NodeRecord } from "./node.ts";

/** Price of a node per hour. */
export interface NodePrice {
  readonly perHour: number;
  /** Code of ISO 4217. */
  readonly currency: string;
}

/** The price of a node at the time when it became ready; undefined when it is unknown. */
export function priceOf({ driverData }: Pick<NodeRecord, "driverData">): NodePrice | undefined {
  const own = isObject(driverData) && isObject(driverData.nodeyard) ? driverData.nodeyard.price : undefined;
  if (!isObject(own)) return undefined;
  const { per_hour: perHour, currency } = own;
  return typeof perHour === "number" && typeof currency === "string" ? { perHour, currency } : undefined;
}

/** A price in the form of records and lists. */
export function costOf(price: NodePrice | undefined): { per_hour: number; currency: string } | null {
  return price === undefined ? null : { per_hour: price.perHour, currency: price.currency };
}

/** Adds the price to `driver_data`, below the key `nodeyard`, which only Nodeyard writes. A value that is no mapping stays unchanged. */
export function withPrice(driverData: unknown, price: NodePrice | null): unknown {
  if (price === null || (driverData !== null && !isObject(driverData))) return driverData;
  const { nodeyard, ...driver } = driverData ?? {};
  const own = isObject(nodeyard) ? nodeyard : {};
  return {
    ...driver,
    nodeyard: { ...own, price: costOf(price) },
  };
}
