import { errorClass, messageOf, NodeyardError } from "@nodeyard/runtime";

/** Base class of the errors of a scan. `code` is stable and meant for programs. */
export class KeyscanError extends NodeyardError {}

/** The target was not ready in time. `cause` is the last failure. */
export class ScanTimeoutError extends errorClass("keyscan.timeout", KeyscanError) {}

/** The target answers, but not like an SSH server. The scan tries again until its time is up. */
export class ScanProtocolError extends errorClass("keyscan.protocol", KeyscanError) {}

/** The server cannot prove that it owns the host key it shows. The scan does not try again. */
export class HostKeyProofError extends errorClass("keyscan.host_key_proof", KeyscanError) {}

/** The server and this scanner have no algorithm in common. The scan does not try again. */
export class NoCommonAlgorithmError extends errorClass("keyscan.no_common_algorithm", KeyscanError) {}

/** The queue of scans is full. */
export class ScanQueueFullError extends errorClass("keyscan.queue_full", KeyscanError) {}

/** Whether another try would fail in the same way. */
export function isFinal(error: unknown): boolean {
  return error instanceof HostKeyProofError || error instanceof NoCommonAlgorithmError;
}

/** The text of an error, or its code when Node provides no text. */
export function describe(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(describe).join("; ");
  return messageOf(error) || String((error as { code?: unknown }).code ?? "unknown error");
}
