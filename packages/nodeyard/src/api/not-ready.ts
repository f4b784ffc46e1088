import { NodeyardError } from "@nodeyard/runtime";

/** Not ready yet: the tree has not been read or the pools are not registered. */
export class NotReady extends NodeyardError {
  constructor(why: string) {
    super("api.not_ready", why);
  }
}
