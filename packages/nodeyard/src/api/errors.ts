import { NodeyardError } from "@nodeyard/runtime";

/** The HTTP interface cannot listen on the configured address. */
export class ListenError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("api.cannot_listen", message, options);
  }
}

/** Not ready yet: the tree has not been read or the pools are not registered. */
export class NotReady extends NodeyardError {
  constructor(why: string) {
    super("api.not_ready", why);
  }
}
