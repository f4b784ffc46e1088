import { NodeyardError } from "@nodeyard/runtime";

/** Too many changes wait; nothing was done. */
export class BusyError extends NodeyardError {
  constructor(message: string) {
    super("sliver.busy", message);
  }
}

/** A call was accepted and stored, but carrying it out failed or is not finished; it is retried. */
export class NotYetError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.not_yet", message, options);
  }
}
