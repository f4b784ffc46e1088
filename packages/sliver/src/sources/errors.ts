import { NodeyardError } from "@nodeyard/runtime";

/** The centre did not answer in time, or not at all. */
export class PlcTimeoutError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.plc_unreachable", message, options);
  }
}

/** The centre answered with a fault; an authentication that has ended is one. */
export class PlcFaultError extends NodeyardError {
  constructor(fault: string) {
    super("sliver.plc_fault", `the centre answered with a fault: ${fault}`);
  }
}

/** Where documents lie nobody answered, or not in time. */
export class SourceUnreachableError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.source_unreachable", message, options);
  }
}

/** Where documents lie something else was served. */
export class SourceAnswerError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.source_answer", message, options);
  }
}

/** A node without keys believes nobody. */
export class NoKeysError extends NodeyardError {
  constructor() {
    super("sliver.no_keys", "this node has no key set; enrol it");
  }
}
