import type { Clock, Random } from "@nodeyard/runtime";
import type { Tree } from "@nodeyard/tree";

/** What an operation needs of the process it runs in. A command makes one for its connection, a daemon one for its life. */
export interface OperationHandles {
  readonly tree: Tree;
  readonly clock: Clock;
  readonly random: Random;
}
