import { NodeyardError } from "@nodeyard/runtime";

/** The HTTP interface cannot listen on the configured address. */
export class ListenError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("api.cannot_listen", message, options);
  }
}
