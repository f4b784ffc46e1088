import type { Op, Tree } from "@nodeyard/tree";
import { changedWrites } from "./commits.ts";

/** No write to the contract's records checks a contender or a version. */
export function withoutFences<T extends Tree>(tree: T): T {
  return changedWrites(tree, unfenced);
}

function unfenced(op: Op): Op | undefined {
  if (!op.path.startsWith("/nodepool/")) return op;
  if (op.op === "check") return undefined;
  if (op.op !== "set") return op;
  const { version: _, ...rest } = op;
  return rest;
}
