import { DriverError, type DriverErrorKind, messageOf } from "@nodeyard/driver";

/** The system's error codes, as kinds for the launcher. Any other code is `fatal`. */
const KINDS: Readonly<Record<string, DriverErrorKind>> = {
  // Full: another provider may have space.
  ENOSPC: "capacity",
  EDQUOT: "capacity",
  EAGAIN: "capacity",
  ENOMEM: "capacity",
  EMFILE: "capacity",
  ENFILE: "capacity",
  // Somebody has to correct the configuration or the folder.
  EACCES: "configuration",
  EPERM: "configuration",
  EROFS: "configuration",
  ENOTDIR: "configuration",
  ENAMETOOLONG: "configuration",
  // Another process was faster; the next attempt sees its result.
  ENOENT: "transient",
  ENOTEMPTY: "transient",
  EBUSY: "transient",
};

/** Mapped once, at the driver's edge. `place` is the provider and the call. */
export function mapError(error: unknown, place: string): DriverError {
  if (error instanceof DriverError) return error;
  const { code } = error as NodeJS.ErrnoException;
  return new DriverError(KINDS[String(code)] ?? "fatal", `${place}: ${messageOf(error)}`, { cause: error });
}
