import { NodeyardError } from "@nodeyard/runtime";

/** The machine cannot become a sliver host, or stop being one; the message names the obstacle and what to do. */
export class EnrolError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.enrol", message, options);
  }
}
