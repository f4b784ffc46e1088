import { DriverError, type DriverErrorKind, messageOf } from "@nodeyard/driver";

/** Codes of system errors (errno(3)) whose kind is not `fatal`. */
const KINDS: Readonly<Record<string, DriverErrorKind>> = {
  EACCES: "access",
  EPERM: "access",
  ENAMETOOLONG: "configuration",
  EROFS: "access",
  // The disk of this host is full, but another host may have room.
  ENOSPC: "capacity",
  EDQUOT: "capacity",
  ENOMEM: "capacity",
  EAGAIN: "transient",
  EMFILE: "transient",
  ENFILE: "transient",
  EBUSY: "transient",
};

/** Translates errors of files and processes. DriverErrors stay as they are. No other module does this. */
export function mapError(error: unknown, place: string): DriverError {
  if (error instanceof DriverError) return error;
  const code = (error as NodeJS.ErrnoException | null)?.code ?? "";
  return new DriverError(KINDS[code] ?? "fatal", `${place}: ${messageOf(error)}`, { cause: error });
}
