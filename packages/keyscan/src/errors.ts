/** Base of what a scan rejects with. `code` is stable and meant for programs. */
export class KeyscanError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** The target was not ready in time; `cause` is the last failure. */
export class ScanTimeoutError extends KeyscanError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("keyscan.timeout", message, options);
  }
}

/** The peer answers, but not as an SSH server should. Tried again until the time is up. */
export class ScanProtocolError extends KeyscanError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("keyscan.protocol", message, options);
  }
}

/** The server cannot prove that it owns the host key it shows. Never tried again. */
export class HostKeyProofError extends KeyscanError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("keyscan.host_key_proof", message, options);
  }
}

/** The server and this scanner have no algorithm in common. Never tried again. */
export class NoCommonAlgorithmError extends KeyscanError {
  constructor(message: string) {
    super("keyscan.no_common_algorithm", message);
  }
}

/** The queue of scans is full. */
export class ScanQueueFullError extends KeyscanError {
  constructor(message: string) {
    super("keyscan.queue_full", message);
  }
}

/** True for what no second try can mend. */
export function isFinal(error: unknown): boolean {
  return error instanceof HostKeyProofError || error instanceof NoCommonAlgorithmError;
}

/** The text of whatever was thrown, with the reason where the runtime gives a code only. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof AggregateError) return error.errors.map(describe).join("; ");
  return error.message || String((error as { code?: unknown }).code ?? error.name);
}
