import { TreeError } from "@nodeyard/tree";

const CODES: ReadonlySet<string> = new Set([
  "tree.connection_lost",
  "tree.session_expired",
  "tree.call_ended",
]);

/** Whether a call was interrupted without an answer of the tree. A read, or work that finds its earlier results, may be repeated. */
export function isInterrupted(error: unknown): error is TreeError {
  return error instanceof TreeError && CODES.has(error.code);
}
