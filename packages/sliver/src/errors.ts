import { NodeyardError } from "@nodeyard/runtime";

/** A document or ticket that is older than what the node has; nothing of it is applied. */
export class StaleDocumentError extends NodeyardError {
  constructor(message: string) {
    super("sliver.stale", message);
  }
}

/** Two different documents have the same epoch and version, so two launchers write for this node. Nothing is applied. */
export class ConflictingDocumentError extends NodeyardError {
  constructor(message: string) {
    super("sliver.conflict", message);
  }
}

/** A document that is for another node, or that cannot be read. */
export class WrongDocumentError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.document", message, options);
  }
}

/** A ticket that was used before, or that this node does not accept. */
export class TicketRefusedError extends NodeyardError {
  constructor(message: string) {
    super("sliver.ticket_refused", message);
  }
}
