import { NodeyardError } from "@nodeyard/runtime";

/** A builder cannot be started as it was asked for, or a build or upload did not come about. The message says what to do. */
export class BuilderError extends NodeyardError {}
