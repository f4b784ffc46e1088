import { NodeyardError } from "@nodeyard/runtime";

/** A machine could not be made a sliver host, or could not be reached. The message says why, and what to do. */
export class SliverHostError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("slivers.host", message, options);
  }
}
