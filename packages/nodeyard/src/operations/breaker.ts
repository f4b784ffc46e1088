import { NodeyardError } from "@nodeyard/runtime";
import type { Offering } from "../scheduler/index.ts";

/** Where breakers that are open are kept; a closed one has no record. */
export const BREAKERS = "/nodeyard/breakers";

/** An open breaker: nothing is launched of the offering before `until`, and then by one request at a time. */
export interface Breaker extends Offering {
  /** `failures`: launches failed in a row, or the cloud has no room. `budget`: too many failed within the hour. */
  readonly why: "failures" | "budget";
  /** Kind of the last error. */
  readonly kind: string;
  /** Its text, cut. */
  readonly error: string;
  /** Launches that failed since it was closed last. */
  readonly failures: number;
  /** Times that it opened since it was closed last. */
  readonly opens: number;
  /** Tree time, milliseconds, at which it opened first since it was closed last. */
  readonly since: number;
  /** Tree time, milliseconds. */
  readonly until: number;
  /** Failed launches that count against the hour's budget; it drains steadily. `at`: tree time, milliseconds. */
  readonly spent: { readonly level: number; readonly at: number };
}

export class BreakerError extends NodeyardError {}

const VERSION = 1;

/** `key`: offeringKey. */
export function breakerPath(key: string): string {
  return `${BREAKERS}/${key}`;
}

/** Stands, bound to the session of its launcher, while a request tries what is open. */
export function probePath(key: string): string {
  return `${breakerPath(key)}/probe`;
}

export function encodeProbe(request: string): Uint8Array {
  return Buffer.from(JSON.stringify({ v: VERSION, request }));
}

/** The request that tries; "" for one that only a later release understands. */
export function decodeProbe(data: Uint8Array): string {
  try {
    const { request } = JSON.parse(Buffer.from(data).toString()) as { request?: unknown };
    return typeof request === "string" ? request : "";
  } catch {
    return "";
  }
}

export function encodeBreaker(breaker: Breaker): Uint8Array {
  return Buffer.from(JSON.stringify({ v: VERSION, ...breaker }));
}

/** Throws BreakerError for a record that is no breaker of a version we read. */
export function decodeBreaker(key: string, data: Uint8Array): Breaker {
  let value: Partial<Record<keyof Breaker | "v", unknown>>;
  try {
    value = JSON.parse(Buffer.from(data).toString()) as typeof value;
  } catch (error) {
    throw new BreakerError("breaker.not_json", `breaker ${key} is not JSON`, { cause: error });
  }
  const { v, ...fields } = value ?? {};
  if (v !== VERSION)
    throw new BreakerError(
      "breaker.version",
      `breaker ${key} has version ${JSON.stringify(v)}, this Nodeyard reads ${VERSION}`,
    );
  const { why, az, spent } = fields;
  const texts = [fields.provider, fields.type, fields.kind, fields.error];
  const { level, at } = (spent ?? {}) as { level?: unknown; at?: unknown };
  const numbers = [fields.failures, fields.opens, fields.since, fields.until, level, at];
  if (
    (why !== "failures" && why !== "budget") ||
    (az !== null && typeof az !== "string") ||
    !texts.every((text) => typeof text === "string") ||
    !numbers.every((number) => typeof number === "number" && Number.isFinite(number))
  )
    throw new BreakerError(
      "breaker.bad_field",
      `breaker ${key} lacks a field or has one of a wrong type: delete ${breakerPath(key)}`,
    );
  return fields as unknown as Breaker;
}
