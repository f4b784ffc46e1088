import { TreeError } from "../errors.ts";

/** A tree that cannot be moved between a state folder and a ZooKeeper without a loss; the message says what and what to do. */
export class MoveRefused extends TreeError {
  constructor(why: string, cause?: unknown) {
    super("tree.move_refused", why, { cause });
  }
}
