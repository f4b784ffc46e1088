import type { Op, Tree } from "@nodeyard/tree";
import { changedWrites } from "./commits.ts";

/** Ledgers beneath `folder` are written over whatever another launcher wrote. */
export function withoutReservation<T extends Tree>(tree: T, folder = "/nodeyard/limits/"): T {
  return changedWrites(tree, (op: Op) => {
    if (op.op !== "set" || !op.path.startsWith(folder)) return op;
    const { version: _, ...rest } = op;
    return rest;
  });
}
