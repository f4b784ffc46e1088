import { TreeError } from "@nodeyard/tree";

const CODES: ReadonlySet<string> = new Set([
  "tree.connection_lost",
  "tree.session_expired",
  "tree.call_ended",
]);

/** The call broke off; the tree did not say no. A read, or work that finds what it already did, may be repeated. */
export function isInterrupted(error: unknown): error is TreeError {
  return error instanceof TreeError && CODES.has(error.code);
}
