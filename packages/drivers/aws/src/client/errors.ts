/** Content of an SDK error. Codes are those of the public API references. */
export interface AwsFault {
  /** "InsufficientInstanceCapacity", "ECONNREFUSED". */
  readonly code: string;
  /** HTTP status; undefined when the service did not answer. */
  readonly status: number | undefined;
  /** One line, without credentials. */
  readonly message: string;
}

/** Reads an error of the SDK. Null for an error that is neither from the SDK nor from its connections, such as an abort. */
export function faultOf(error: unknown): AwsFault | null {
  if (!(error instanceof Error)) return null;
  const { $metadata, code } = error as { $metadata?: { httpStatusCode?: number }; code?: unknown };
  // Errors of credential providers have no metadata. Errors of sockets have a code and only the generic name.
  const errno = typeof code === "string" && /^[A-Z][A-Z0-9_]+$/.test(code) ? code : undefined;
  const isOfLogin = /^(CredentialsProviderError|TokenProviderError|ProviderError)$/.test(error.name);
  if ($metadata === undefined && errno === undefined && !isOfLogin) return null;
  // The SDK names its errors after the service's code.
  const name = error.name === "Error" && errno !== undefined ? errno : error.name;
  // Messages may quote key ids, and the encoded authorization message fills a screen.
  const message = error.message
    .replace(/\s*Encoded authorization failure message:[\s\S]*/u, "")
    .replace(/\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b/g, "(key id)")
    .replace(/\s+/g, " ")
    .trim();
  return { code: name, status: $metadata?.httpStatusCode, message };
}

/** Error code of the service, or "" for any other error. */
export function codeOf(error: unknown): string {
  return faultOf(error)?.code ?? "";
}

/** For `catch`: undefined in place of an error with such a code. Other errors are thrown again. */
export function unless(codes: RegExp): (error: unknown) => undefined {
  return (error) => {
    if (!codes.test(codeOf(error))) throw error;
  };
}

/**
 * Codes by which services ask for fewer calls (EC2: "Throttling for the Amazon EC2 API"; S3: SlowDown; EBS direct APIs:
 * RequestThrottledException).
 */
export const THROTTLED =
  /^(RequestLimitExceeded|Throttl|RequestThrottled|EC2ThrottledException|SlowDown|TooManyRequests|PriorRequestNotComplete|BandwidthLimitExceeded)/;

/**
 * The error for a page of HTML that does not come from AWS, which signs its answers with a request id: of a proxy, or of a login to a
 * network. Undefined for any other answer. The SDK takes some of these pages for an empty list. `raw`: the answer as it came.
 */
export function strangeAnswer(call: string, host: string | undefined, raw: unknown): Error | undefined {
  const { statusCode: httpStatusCode, headers = {} } = (raw ?? {}) as {
    readonly statusCode?: number;
    readonly headers?: Readonly<Record<string, string>>;
  };
  const names = Object.keys(headers).join();
  if (!/text\/html/i.test(headers["content-type"] ?? "") || /request-?id/i.test(names)) return undefined;
  const text = `${call} at ${host} was answered ${httpStatusCode} with a page of HTML that is not AWS's; check the proxy and the network in between`;
  return Object.assign(new Error(text), { name: "StrangeAnswer", $metadata: { httpStatusCode } });
}
