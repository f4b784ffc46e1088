/** What an error of the SDK says; codes are those of the public API references. */
export interface AwsFault {
  /** "InsufficientInstanceCapacity", "ECONNREFUSED". */
  readonly code: string;
  /** HTTP status; undefined where no answer came. */
  readonly status: number | undefined;
  /** One line, without credentials. */
  readonly message: string;
}

/** Null for what is no error of the SDK or of its connections. */
export function faultOf(error: unknown): AwsFault | null {
  if (!(error instanceof Error)) return null;
  const { $metadata, code } = error as { $metadata?: { httpStatusCode?: number }; code?: unknown };
  // Credential providers throw without metadata; sockets have a code, and only the generic name.
  const errno = typeof code === "string" && /^[A-Z][A-Z0-9_]+$/.test(code) ? code : undefined;
  const known = $metadata !== undefined || errno !== undefined || CREDENTIALS.test(error.name);
  if (!known) return null;
  const name = error.name === "Error" && errno !== undefined ? errno : error.name;
  return { code: name, status: $metadata?.httpStatusCode, message: redacted(error.message) };
}

/** The service's own code of an error; "" for any other error. */
export function codeOf(error: unknown): string {
  return faultOf(error)?.code ?? "";
}

const CREDENTIALS = /^(CredentialsProviderError|TokenProviderError|ProviderError)$/;

/**
 * Codes with which services ask for fewer calls (EC2: "Throttling for the Amazon EC2 API"; S3: SlowDown; EBS direct:
 * RequestThrottledException).
 */
const THROTTLED =
  /^(RequestLimitExceeded|Throttl|RequestThrottled|EC2ThrottledException|SlowDown|TooManyRequests|PriorRequestNotComplete|BandwidthLimitExceeded)/;

export function isThrottled({ code, status }: AwsFault): boolean {
  return THROTTLED.test(code) || status === 429;
}

/** Messages may quote the key id of a request, and the encoded reason of a refusal fills a screen. */
function redacted(message: string): string {
  return message
    .replace(/\s*Encoded authorization failure message:[\s\S]*/u, "")
    .replace(/\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b/g, "(key id)")
    .replace(/\s+/g, " ")
    .trim();
}
