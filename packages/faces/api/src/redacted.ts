import type { Row } from "@nodeyard/operations/listing";

/** Replaces a value that the caller may not see; that it exists is no secret. */
export const REDACTED = "redacted";

/** Keys of what jobs and drivers write for themselves, passwords included. */
const SECRET = ["comment", "user_data", "driver_data"] as const;

/** A node's row without its secrets. */
export function redacted(row: Row): Row {
  const hidden = SECRET.filter((key) => row[key] != null).map((key) => [key, REDACTED]);
  return { ...row, ...Object.fromEntries(hidden) };
}
