import { errorClass, messageOf, NodeyardError } from "@nodeyard/runtime";

/** Base of what a scan rejects with. `code` is stable and meant for programs. */
export class KeyscanError extends NodeyardError {}

/** The target was not ready in time; `cause` is the last failure. */
export class ScanTimeoutError extends errorClass("keyscan.timeout", KeyscanError) {}

/** The peer answers, but not as an SSH server should. Tried again until the time is up. */
export class ScanProtocolError extends errorClass("keyscan.protocol", KeyscanError) {}

/** The server cannot prove that it owns the host key it shows. Never tried again. */
export class HostKeyProofError extends errorClass("keyscan.host_key_proof", KeyscanError) {}

/** The server and this scanner have no algorithm in common. Never tried again. */
export class NoCommonAlgorithmError extends errorClass("keyscan.no_common_algorithm", KeyscanError) {}

/** The queue of scans is full. */
export class ScanQueueFullError extends errorClass("keyscan.queue_full", KeyscanError) {}

/** Whether another try cannot help. */
export function isFinal(error: unknown): boolean {
  return error instanceof HostKeyProofError || error instanceof NoCommonAlgorithmError;
}

/** The text of whatever was thrown, with the reason where the runtime gives a code only. */
export function describe(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(describe).join("; ");
  return messageOf(error) || String((error as { code?: unknown }).code ?? "unknown error");
}
