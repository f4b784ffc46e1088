import { NodeyardError } from "@nodeyard/runtime";

/** More waits than may; nothing was done. */
export class BusyError extends NodeyardError {
  constructor(message: string) {
    super("sliver.busy", message);
  }
}

/** A call was accepted and is durable, but what it asked for did not work, or not in time; it is tried again. */
export class NotYetError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.not_yet", message, options);
  }
}
