import { messageOf, NodeyardError } from "@nodeyard/runtime";

/**
 * quota: our share of the cloud is used up; re-plan. capacity: the cloud itself has none there; try elsewhere.
 * configuration: the label can never work until someone mends it. transient: try again. not-found: it is gone.
 * timeout: no answer in time. host-key: it answers, but as someone else. fatal: none of these.
 */
export type DriverErrorKind =
  | "quota"
  | "capacity"
  | "configuration"
  | "transient"
  | "not-found"
  | "timeout"
  | "host-key"
  | "fatal";

const BRAND = Symbol.for("nodeyard.DriverError");

/** The only class that a driver's methods throw. `code` is `driver.<kind>`. */
export class DriverError extends NodeyardError {
  readonly kind: DriverErrorKind;

  /** A driver from outside may bring a copy of this package along; its errors are DriverErrors all the same. */
  static override [Symbol.hasInstance](value: unknown): value is DriverError {
    return typeof value === "object" && value !== null && BRAND in value;
  }

  get [BRAND](): true {
    return true;
  }

  constructor(kind: DriverErrorKind, message: string, options?: { readonly cause?: unknown }) {
    super(`driver.${kind}`, message, options);
    this.kind = kind;
  }
}

/** A DriverError as it is; anything else as `fatal`, with `place` before its message. Mapped once, never twice. */
export function asDriverError(error: unknown, place: string): DriverError {
  if (error instanceof DriverError) return error;
  return new DriverError("fatal", `${place}: ${messageOf(error)}`, { cause: error });
}
