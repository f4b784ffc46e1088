import { ApiError, CloudConfigError, NoAnswer, NodeyardError, noAnswer } from "@nodeyard/driver";

/** An error that the SDK throws, or that passes through it. Its name is the service's code, as in the public API references. */
export interface SdkError extends Error {
  /** Added to each error that passes through the SDK. Without a status the service did not answer. */
  readonly $metadata?: { readonly httpStatusCode?: number; readonly requestId?: string };
  /** The answer as it came. */
  readonly $response?: unknown;
}

/** The error of a call as the kit has them; one that is neither the SDK's nor its connections' stays, such as an abort. */
export function kitError(call: string, error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof NodeyardError) return error;
  const { name, $metadata, message } = error as SdkError;
  // Credentials that cannot be had. The SDK says so in its own words.
  if (/^(Credentials|Token)?ProviderError$/.test(name))
    return new CloudConfigError(`${message}; check the credentials of the provider's profile`);
  if ($metadata === undefined) return error;
  const { httpStatusCode: status, requestId = null } = $metadata;
  if (status === undefined) return noAnswer(call, error);
  // Messages may quote key ids, and the encoded authorization message fills a screen.
  const text = message
    .replace(/\s*Encoded authorization failure message:[\s\S]*/u, "")
    .replace(/\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b/g, "(key id)");
  return new ApiError(call, { status, text }, { codes: [name], text, requestId, by: ` ${name}` });
}

/** Codes by which services ask for fewer calls (EC2: "Throttling for the Amazon EC2 API"; S3: SlowDown; EBS: RequestThrottledException). */
export const THROTTLED =
  /^(RequestLimitExceeded|Throttl|RequestThrottled|EC2ThrottledException|SlowDown|TooManyRequests|PriorRequestNotComplete|BandwidthLimitExceeded)/;

/** The error for a page of HTML, of a proxy or a login to a network: AWS's answers have a request id. The SDK takes some for an empty list. */
export function strangeAnswer(call: string, host: string | undefined, raw: unknown): Error | undefined {
  const { statusCode: httpStatusCode, headers = {} } = (raw ?? {}) as {
    readonly statusCode?: number;
    readonly headers?: Readonly<Record<string, string>>;
  };
  const names = Object.keys(headers).join();
  if (!/text\/html/i.test(headers["content-type"] ?? "") || /request-?id/i.test(names)) return undefined;
  const text = `${call} at ${host} was answered ${httpStatusCode} with a page of HTML that is not AWS's; check the proxy and the network in between`;
  // The SDK repeats calls by the status.
  return Object.assign(new NoAnswer(text), { $metadata: { httpStatusCode } });
}
