import { NodeyardError } from "@nodeyard/runtime";

/** It can be answered soon, and not now. */
export class NotReady extends NodeyardError {
  constructor(why: string) {
    super("api.not_ready", why);
  }
}
