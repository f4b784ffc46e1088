import { isObject } from "./fields.ts";
import type { NodeRecord } from "./node.ts";

/** What an hour of a node costs. */
export interface NodePrice {
  readonly perHour: number;
  /** Code of ISO 4217. */
  readonly currency: string;
}

/** What an hour of a node costs, as it was known when it became ready; undefined: nobody knows. */
export function priceOf({ driverData }: Pick<NodeRecord, "driverData">): NodePrice | undefined {
  const own = isObject(driverData) && isObject(driverData.nodeyard) ? driverData.nodeyard.price : undefined;
  if (!isObject(own)) return undefined;
  const { per_hour: perHour, currency } = own;
  return typeof perHour === "number" && typeof currency === "string" ? { perHour, currency } : undefined;
}

/** A price as records and lists have it. */
export function costOf(price: NodePrice | undefined): { per_hour: number; currency: string } | null {
  return price === undefined ? null : { per_hour: price.perHour, currency: price.currency };
}

/** `driver_data` with the price in it; what only Nodeyard writes is beneath `nodeyard`. What is no mapping has no place for one. */
export function withPrice(driverData: unknown, price: NodePrice | null): unknown {
  if (price === null || (driverData !== null && !isObject(driverData))) return driverData;
  const { nodeyard, ...driver } = driverData ?? {};
  const own = isObject(nodeyard) ? nodeyard : {};
  return {
    ...driver,
    nodeyard: { ...own, price: costOf(price) },
  };
}
