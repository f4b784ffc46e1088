import { NodeyardError } from "@nodeyard/runtime";

/** A step of a back end exceeded its time limit. */
export class StepTimeoutError extends NodeyardError {
  constructor(message: string) {
    super("sliver.step_timeout", message);
  }
}

/** A step was not started, because a sliver that has to give something back first could not. */
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

/** The sliver's index is used by another incarnation, or by none. */
export class WrongIncarnationError extends NodeyardError {
  constructor(message: string) {
    super("sliver.incarnation", message);
  }
}

/** The machine lacks something that every sliver needs, or its setup conflicts with slivers. */
export class MachineError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.machine", message, options);
  }
}

/** The disk limits sum to more than the pool, or an image does not fit. */
export class PoolFullError extends NodeyardError {
  constructor(message: string) {
    super("sliver.pool_full", message);
  }
}

/** An image that is not configured, or whose archive is not a usable image. */
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
