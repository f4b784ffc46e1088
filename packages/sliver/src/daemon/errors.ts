import { NodeyardError } from "@nodeyard/runtime";

/** The daemon's file cannot be used; the message names place and mend. */
export class DaemonConfigError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.config", message, options);
  }
}

/** Another daemon works on this state folder, or on this machine. */
export class AlreadyRunningError extends NodeyardError {
  /** As `in /var/lib/sliverd`. */
  constructor(where: string, options?: { readonly cause?: unknown }) {
    super("sliver.running", `another sliverd runs ${where}; stop it first`, options);
  }
}
