import { DriverError, type DriverErrorKind, messageOf } from "@nodeyard/driver";
import { SliverFaultError } from "@nodeyard/sliver-protocol";

const KINDS: Readonly<Record<string, DriverErrorKind>> = {
  // Another writer, an old epoch, or a key that the machine does not know: an operator has to correct it.
  "sliver-protocol.owned": "configuration",
  "sliver-protocol.fenced": "configuration",
  "sliver-protocol.store_lost": "configuration",
  "sliver-protocol.grammar": "configuration",
  "sliver-protocol.signature": "access",
  "sliver-protocol.key_set": "access",
  "sliver-protocol.key_file": "access",
  "sliver-protocol.unreachable": "transient",
  "sliver-protocol.contended": "transient",
  "sliver-protocol.busy": "transient",
};

/** Faults of the manager's API (docs/contract/slivers.md, "Calls and faults"). A wrong argument or a missing permission stays. */
const FAULTS: Readonly<Record<number, DriverErrorKind>> = {
  1: "transient",
  100: "configuration",
  102: "configuration",
  108: "configuration",
};

/** Translates errors of sliver managers and their transports. One that is in neither table is a bug, and "fatal". */
export function mapError(error: unknown, place: string): DriverError {
  if (error instanceof DriverError) return error;
  const code = String((error as { code?: unknown } | null)?.code ?? "");
  // The manager's words for a document whose signature it does not trust: the keys are the provider's, and no label is at fault.
  const isDistrusted = error instanceof SliverFaultError && /\bno key "/.test(error.message);
  const ofFault = error instanceof SliverFaultError ? FAULTS[error.fault] : KINDS[code];
  const kind = isDistrusted ? "access" : ofFault;
  return new DriverError(kind ?? "fatal", `${place}: ${messageOf(error)}`, { cause: error });
}
