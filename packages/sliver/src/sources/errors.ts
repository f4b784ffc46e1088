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
