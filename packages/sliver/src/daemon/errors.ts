import { NodeyardError } from "@nodeyard/runtime";

/** The daemon's file cannot be used; the message names place and mend. */
export class DaemonConfigError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.config", message, options);
  }
}

/** Another daemon works on this state folder. */
export class AlreadyRunningError extends NodeyardError {
  constructor(folder: string, options?: { readonly cause?: unknown }) {
    super("sliver.running", `another sliverd works in ${folder}; stop it first`, options);
  }
}
