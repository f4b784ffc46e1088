import { TreeError } from "../errors.ts";

/** The lock was not free before the deadline. Nothing of the attempt is left in the line. */
export class LockTimeout extends TreeError {
  constructor(parent: string, ms: number) {
    super("tree.lock_timeout", `${parent} was not free within ${Math.round(ms)} ms`);
  }
}
