import { DriverError, type DriverErrorKind, messageOf } from "@nodeyard/driver";

/** What the system says, as what the launcher is to do about it. What is not in here is `fatal`. */
const KINDS: Readonly<Record<string, DriverErrorKind>> = {
  // Full: another provider may have room.
  ENOSPC: "capacity",
  EDQUOT: "capacity",
  EAGAIN: "capacity",
  ENOMEM: "capacity",
  EMFILE: "capacity",
  ENFILE: "capacity",
  // Someone has to mend the configuration or the folder.
  EACCES: "configuration",
  EPERM: "configuration",
  EROFS: "configuration",
  ENOTDIR: "configuration",
  ENAMETOOLONG: "configuration",
  // Someone else was quicker; the next look sees what there is.
  ENOENT: "transient",
  ENOTEMPTY: "transient",
  EBUSY: "transient",
};

/** Mapped once, at the driver's edge. `place` is the provider and what was done. */
export function mapError(error: unknown, place: string): DriverError {
  if (error instanceof DriverError) return error;
  const { code } = error as NodeJS.ErrnoException;
  return new DriverError(KINDS[String(code)] ?? "fatal", `${place}: ${messageOf(error)}`, { cause: error });
}
