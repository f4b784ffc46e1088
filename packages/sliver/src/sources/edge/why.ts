import { messageOf } from "@nodeyard/runtime";

/** Of Node's codes: who signed the place's certificate is not known here. */
const UNKNOWN_AUTHORITY: ReadonlySet<unknown> = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);
/** OpenSSL's own: a number of its queue, function, reason, a line of its sources. */
const OPENSSL = /error:[0-9A-F]{8}:[^:]*:[^:]*:([^:]+)/;
const WANTS_CERTIFICATE = /certificate required|handshake failure/;

/** Why a call failed, in one line. Node's own remedy for authorities is a command-line option, which a daemon's user cannot set. */
export function whyOf(cause: unknown): string {
  const message = messageOf(cause);
  if (UNKNOWN_AUTHORITY.has((cause as { code?: unknown } | null)?.code))
    return `${message.split(";")[0]}; name its authority's certificate in caFile`;
  const reason = OPENSSL.exec(message)?.[1];
  if (reason === undefined) return message.trim();
  return `TLS: ${reason}${WANTS_CERTIFICATE.test(reason) ? "; where it asks for a certificate of this node, name certFile and keyFile" : ""}`;
}
