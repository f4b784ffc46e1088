import { isObject } from "./fields.ts";
import type { NodeRecord } from "./node.ts";
import { backingData } from "./slots.ts";

/** Price of a node per hour. */
export interface NodePrice {
  readonly perHour: number;
  /** Code of ISO 4217. */
  readonly currency: string;
  /** Of a slot: the labels of its backing node, of whose price this is a part. */
  readonly partOf?: readonly string[];
}

/** The price of a node at the time when it became ready; undefined when it is unknown. */
export function priceOf({ driverData }: Pick<NodeRecord, "driverData">): NodePrice | undefined {
  const own = isObject(driverData) && isObject(driverData.nodeyard) ? driverData.nodeyard.price : undefined;
  if (!isObject(own)) return undefined;
  const { per_hour: perHour, currency, part_of: labels } = own;
  if (typeof perHour !== "number" || typeof currency !== "string") return undefined;
  if (!Array.isArray(labels)) return { perHour, currency };
  return { perHour, currency, partOf: labels.filter((label) => typeof label === "string") };
}

/** The type of the offering that a node is bought as; undefined: its label has no several offerings. */
export function offeringTypeOf({ driverData }: Pick<NodeRecord, "driverData">): string | undefined {
  const own =
    isObject(driverData) && isObject(driverData.nodeyard) ? driverData.nodeyard.offering : undefined;
  return typeof own === "string" ? own : undefined;
}

/** What one slot of a backing node costs: an equal part of the machine's price; null when that is not known. */
export function slotPriceOf(backing: Pick<NodeRecord, "driverData" | "userData" | "type">): NodePrice | null {
  const [price, slots] = [priceOf(backing), backingData(backing)?.slots ?? 0];
  if (price === undefined || slots === 0) return null;
  return { perHour: price.perHour / slots, currency: price.currency, partOf: backing.type };
}

/** A price in the form of records and lists. */
export function costOf(price: NodePrice | undefined): { per_hour: number; currency: string } | null {
  return price === undefined ? null : { per_hour: price.perHour, currency: price.currency };
}

/** Adds the price to `driver_data` (`withOwn`). */
export function withPrice(driverData: unknown, price: NodePrice | null): unknown {
  if (price === null) return driverData;
  const partOf = price.partOf !== undefined && { part_of: price.partOf };
  return withOwn(driverData, { price: { ...costOf(price), ...partOf } });
}

/** Adds fields below the key `nodeyard` of `driver_data`, which only Nodeyard writes. A value that is no mapping stays unchanged. */
export function withOwn(driverData: unknown, fields: object): unknown {
  if (driverData !== null && !isObject(driverData)) return driverData;
  const { nodeyard, ...driver } = driverData ?? {};
  return { ...driver, nodeyard: { ...(isObject(nodeyard) ? nodeyard : {}), ...fields } };
}

/** `driver_data` without a price. */
export function withoutPrice(driverData: object): object {
  const { nodeyard, ...driver } = driverData as Readonly<Record<string, unknown>>;
  if (!isObject(nodeyard)) return driverData;
  const { price: _, ...own } = nodeyard;
  return Object.keys(own).length === 0 ? driver : { ...driver, nodeyard: own };
}
