import { messageOf, NodeyardError } from "@nodeyard/runtime";

/**
 * quota: the quota of this credential is used up; plan again. capacity: the cloud has no free machine there; try elsewhere.
 * unsupported: that zone never has what the label asks for; try elsewhere. configuration: the label cannot work until an operator corrects it.
 * access: the cloud refuses the provider: its credentials are wrong, expired or cannot be read, or lack a right. No request and no label is at
 * fault, so requests wait. transient: try again. not-found: the object is gone.
 * timeout: no answer in time. host-key: the host answers with an unexpected key. fatal: any other error.
 */
export type DriverErrorKind =
  | "quota"
  | "capacity"
  | "unsupported"
  | "access"
  | "configuration"
  | "transient"
  | "not-found"
  | "timeout"
  | "host-key"
  | "fatal";

const BRAND = Symbol.for("nodeyard.DriverError");

/** The only class of errors that a driver's methods throw. `code` is `driver.<kind>`. */
export class DriverError extends NodeyardError {
  readonly kind: DriverErrorKind;
  /** With "capacity": zones of which the cloud says that they have room for the type. */
  readonly zonesWithRoom?: readonly string[];

  /** Checks a brand instead of the prototype, because an external driver may bring its own copy of this package. */
  static override [Symbol.hasInstance](value: unknown): value is DriverError {
    return typeof value === "object" && value !== null && BRAND in value;
  }

  get [BRAND](): true {
    return true;
  }

  constructor(
    kind: DriverErrorKind,
    message: string,
    options?: { readonly cause?: unknown; readonly zonesWithRoom?: readonly string[] },
  ) {
    super(`driver.${kind}`, message, options);
    this.kind = kind;
    if (options?.zonesWithRoom !== undefined) this.zonesWithRoom = options.zonesWithRoom;
  }
}

/**
 * The machine of a record exists, and nothing says any more that it was made for the node: somebody removed its metadata. It is not
 * deleted, and its record stays, so that an operator learns of it.
 */
export class LostMetadata extends DriverError {
  constructor(id: string, nodeId: string) {
    super(
      "fatal",
      `machine ${id} of node ${nodeId} does not carry our metadata any more, so it is not deleted: put them back, or delete it by hand`,
    );
  }
}

/** The value, if there is one; throws a DriverError otherwise. */
export function orThrow<T>(
  value: T | undefined,
  message: string,
  kind: DriverErrorKind = "configuration",
): T {
  if (value !== undefined) return value;
  throw new DriverError(kind, message);
}

/** Returns a DriverError unchanged; any other error becomes `fatal`, with `place` before its message. */
export function asDriverError(error: unknown, place: string): DriverError {
  if (error instanceof DriverError) return error;
  return new DriverError("fatal", `${place}: ${messageOf(error)}`, { cause: error });
}
