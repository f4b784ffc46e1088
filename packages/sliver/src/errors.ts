import { NodeyardError } from "@nodeyard/runtime";

/** A document or ticket from before what the node already has; nothing of it is applied. */
export class StaleDocumentError extends NodeyardError {
  constructor(message: string) {
    super("sliver.stale", message);
  }
}

/** Two different documents of one epoch and version: two writers. Nothing is applied. */
export class ConflictingDocumentError extends NodeyardError {
  constructor(message: string) {
    super("sliver.conflict", message);
  }
}

/** A document that is for another node, or that cannot be understood as a whole. */
export class WrongDocumentError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.document", message, options);
  }
}

/** A ticket that was used before, or that this node will not take. */
export class TicketRefusedError extends NodeyardError {
  constructor(message: string) {
    super("sliver.ticket_refused", message);
  }
}
