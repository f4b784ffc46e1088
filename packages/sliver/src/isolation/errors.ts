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
    super("sliver.stopping", "the sliver manager is stopping; what was begun goes on after its next start");
  }
}
