import { NodeyardError } from "@nodeyard/runtime";

/** The daemon's configuration cannot be used; the message names the file, the key and what to do. */
export class DaemonConfigError extends NodeyardError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("sliver.config", message, options);
  }
}

/** Another sliverd runs on this state folder, or on this machine. */
export class AlreadyRunningError extends NodeyardError {
  /** As `in /var/lib/sliverd`. */
  constructor(where: string, options?: { readonly cause?: unknown }) {
    super("sliver.running", `another sliverd runs ${where}; stop it first`, options);
  }
}
