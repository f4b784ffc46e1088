/** Base of what this package throws. `code` is stable and meant for programs. */
export class SliverProtocolError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** A signed text that no valid key of the set has signed, or that was signed for another purpose. */
export class SignatureError extends SliverProtocolError {
  constructor(message: string) {
    super("sliver-protocol.signature", message);
  }
}

/** A value that the grammar of documents does not allow; the message names its place. */
export class GrammarError extends SliverProtocolError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver-protocol.grammar", message, options);
  }
}

/** A ticket that is signed well, but not for this node or not for now. */
export class TicketError extends SliverProtocolError {
  constructor(message: string) {
    super("sliver-protocol.ticket", message);
  }
}

/** A key set that must not replace the present one. */
export class KeySetError extends SliverProtocolError {
  constructor(message: string) {
    super("sliver-protocol.key_set", message);
  }
}

/** The sliver manager gave no answer in time, or one that is none. Whether it acted is unknown. */
export class SliverUnreachableError extends SliverProtocolError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver-protocol.unreachable", message, options);
  }
}

/** The sliver manager refused a call. `fault` is its number, as in XML-RPC: 100 method, 101 count, 102 argument, 104 call, 108 permission. */
export class SliverFaultError extends SliverProtocolError {
  readonly fault: number;

  constructor(fault: number, message: string) {
    super("sliver-protocol.fault", message);
    this.fault = fault;
  }
}
