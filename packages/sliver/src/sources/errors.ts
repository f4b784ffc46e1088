import { NodeyardError } from "@nodeyard/runtime";

/** The PLC server did not answer in time. */
export class PlcTimeoutError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.plc_unreachable", message, options);
  }
}

/** The PLC server answered with a fault, for example because the authentication expired. */
export class PlcFaultError extends NodeyardError {
  constructor(fault: string) {
    super("sliver.plc_fault", `the centre answered with a fault: ${fault}`);
  }
}

/** The URL of the documents did not answer in time. */
export class SourceUnreachableError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.source_unreachable", message, options);
  }
}

/** The URL of the documents served something else. */
export class SourceAnswerError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.source_answer", message, options);
  }
}

/** The node has no key set, so it accepts no signed document. */
export class NoKeysError extends NodeyardError {
  constructor() {
    super("sliver.no_keys", "this node has no key set; enrol it");
  }
}
