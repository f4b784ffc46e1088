import type { Clock, Random } from "@nodeyard/runtime";
import { type Tree, TreeError } from "@nodeyard/tree";

/** What an operation needs of the process it runs in. */
export interface OperationHandles {
  readonly tree: Tree;
  readonly clock: Clock;
  readonly random: Random;
}

/** Tree time, milliseconds. */
export function treeNow({ tree, clock }: OperationHandles): number {
  return clock.now() + tree.clockOffset();
}

export async function orUndefined<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof TreeError && error.code === "tree.no_node") return undefined;
    throw error;
  }
}
