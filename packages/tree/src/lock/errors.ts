import { TreeError } from "../errors.ts";

/** The lock was not free before the deadline. No contender is left behind. */
export class LockTimeout extends TreeError {
  constructor(parent: string, ms: number) {
    super("tree.lock_timeout", `${parent} was not free within ${Math.round(ms)} ms`);
  }
}
