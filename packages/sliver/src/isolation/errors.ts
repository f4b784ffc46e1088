import { NodeyardError } from "@nodeyard/runtime";

/** A step of a back end took longer than it may. */
export class StepTimeoutError extends NodeyardError {
  constructor(message: string) {
    super("sliver.step_timeout", message);
  }
}

/** A step was not begun, since a sliver that had to give something back first could not. */
export class LenderStuckError extends NodeyardError {
  constructor(message: string) {
    super("sliver.lender_stuck", message);
  }
}

/** The manager is being stopped. */
export class StoppingError extends NodeyardError {
  constructor() {
    super(
      "sliver.stopping",
      "the sliver manager is stopping; unfinished work continues after its next start",
    );
  }
}

/** A program that a back end needs failed, or is not installed. */
export class CommandError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.command", message, options);
  }
}

/** The place of a sliver holds another incarnation, or none. */
export class WrongIncarnationError extends NodeyardError {
  constructor(message: string) {
    super("sliver.incarnation", message);
  }
}

/** The machine lacks what every sliver needs, or something of it is in the way. */
export class MachineError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.machine", message, options);
  }
}

/** Limits of disk sum to more than the pool, or an image does not fit. */
export class PoolFullError extends NodeyardError {
  constructor(message: string) {
    super("sliver.pool_full", message);
  }
}

/** An image that nobody declared, or that is none. */
export class ImageError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.image", message, options);
  }
}

/** Text that must not reach an interpreter that runs as root. */
export class UnsafeTextError extends NodeyardError {
  constructor(message: string) {
    super("sliver.unsafe_text", message);
  }
}
