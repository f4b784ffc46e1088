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

const HOUR_MS = 3_600_000;

/** The price of a node at the time when it became ready; undefined when it is unknown. */
export function priceOf({ driverData }: Pick<NodeRecord, "driverData">): NodePrice | undefined {
  const own = isObject(driverData) && isObject(driverData.nodeyard) ? driverData.nodeyard.price : undefined;
  if (!isObject(own)) return undefined;
  const { per_hour: perHour, currency, part_of: labels } = own;
  if (typeof perHour !== "number" || !Number.isFinite(perHour) || typeof currency !== "string")
    return undefined;
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

/** What a price comes to from one time to another, milliseconds. */
export function costBetween({ perHour }: Pick<NodePrice, "perHour">, from: number, to: number): number {
  return (perHour * Math.max(0, to - from)) / HOUR_MS;
}

/** An amount of money or of hours as it is shown, with four digits: a price of a second is small, and sums of fractions are not exact. */
export function roundAmount(amount: number): number {
  return Math.round(amount * 10_000) / 10_000;
}

/**
 * Since when the request that has a node bears its cost, tree time in milliseconds: since it was given to it, or, of one that was made for
 * it, since its record was made; undefined: the record does not say.
 */
export function borneSince(record: Pick<NodeRecord, "driverData" | "createdTime">): number | undefined {
  return givenAt(record) ?? (record.createdTime === null ? undefined : record.createdTime * 1_000);
}

/** When a node that was ready was given to the request that has it, tree time in milliseconds; undefined: it was made for it. */
export function givenAt({ driverData }: Pick<NodeRecord, "driverData">): number | undefined {
  const own =
    isObject(driverData) && isObject(driverData.nodeyard) ? driverData.nodeyard.given_at : undefined;
  return typeof own === "number" ? own : undefined;
}

/** Notes in `driver_data` when a node with a known price is given to a request. */
export function withGivenAt(record: Pick<NodeRecord, "driverData">, at: number): unknown {
  return priceOf(record) === undefined
    ? record.driverData
    : withOwn(record.driverData, { given_at: Math.round(at) });
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
