import type { IncomingHttpHeaders } from "node:http";
import type { Agent } from "node:https";
import { createSecureContext, getCACertificates } from "node:tls";
import { messageOf, nodeHttp, nodeHttps } from "@nodeyard/runtime";
import { collect } from "@nodeyard/sliver-protocol";
import { PlcTimeoutError, SourceAnswerError, SourceUnreachableError } from "../../errors.ts";
import type { Post } from "../plc.ts";
import type { DocumentEndpoint } from "../signed.ts";

/** PEM texts. */
export interface TlsFiles {
  /** Authorities that may sign the server's certificate. Absent: those of the system. */
  readonly ca?: string;
  /** This node's certificate and key, for servers that require a client certificate. */
  readonly cert?: string;
  readonly key?: string;
}

/** Milliseconds that an idle connection is kept: long enough for the report that follows a poll. */
const IDLE_MS = 5_000;

/** Characters. */
const MAX_ETAG = 512;
const MAX_LOCATION = 300;

/** Calls to PLC over HTTPS. Plain HTTP is allowed to this machine only, for tests. Rejects with PlcTimeoutError. */
export function httpPost(url: string, files: () => TlsFiles): Post {
  const send = caller(files, PlcTimeoutError);
  return async (body, signal) => {
    const { status, text } = await send("POST", url, { "content-type": "text/xml" }, signal, body);
    if (status !== 200) throw new PlcTimeoutError(`${url}: HTTP ${status}`);
    return text;
  };
}

/** Documents and reports over HTTPS. Plain HTTP is allowed to this machine only, for tests. Redirects are not followed. */
export function httpPlace(
  { url, reportUrl }: { readonly url: string; readonly reportUrl?: string | undefined },
  files: () => TlsFiles,
): DocumentEndpoint {
  const send = caller(files, SourceUnreachableError);
  const fetch: DocumentEndpoint["fetch"] = async (tag, signal) => {
    const headers = { accept: "application/json", ...(tag === undefined ? {} : { "if-none-match": tag }) };
    const { status, headers: answered, text } = await send("GET", url, headers, signal);
    if (status === 304 && tag !== undefined) return undefined;
    if (status !== 200) throw refusal(url, status, answered);
    const { etag } = answered;
    return { text, etag: etag !== undefined && etag.length <= MAX_ETAG ? etag : undefined };
  };
  if (reportUrl === undefined) return { fetch };
  return {
    fetch,
    async report(text, signal) {
      const headers = {
        "content-type": "application/json",
        "content-length": String(Buffer.byteLength(text)),
      };
      const { status, headers: answered } = await send("PUT", reportUrl, headers, signal, text);
      if (status < 200 || status > 299) throw refusal(reportUrl, status, answered);
    },
  };
}

/** Redirects are an error that names the new place: a document must come from where the operator said. */
function refusal(url: string, status: number, { location }: IncomingHttpHeaders): SourceAnswerError {
  const moved = location && ` to ${location.slice(0, MAX_LOCATION)}; configure that URL instead`;
  return new SourceAnswerError(`${url}: HTTP ${status}${moved ?? ""}`);
}

interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Makes calls with the certificates that the files contain at that moment. A failure rejects with a `Failure`. */
function caller(
  files: () => TlsFiles,
  Failure: new (message: string, options: { readonly cause: unknown }) => Error,
) {
  const agent = agents(files);
  return async (
    method: string,
    url: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
    body?: string,
  ): Promise<Reply> => {
    const isTls = url.startsWith("https:");
    const options = { method, headers, ...(isTls ? { agent: agent() } : {}), signal };
    return await new Promise((resolve, reject) => {
      const fail = (cause: unknown) =>
        reject(new Failure(`${url}: ${whyOf(signal.aborted ? signal.reason : cause)}`, { cause }));
      const sent = (isTls ? nodeHttps() : nodeHttp()).request(url, options, (answer) => {
        const { statusCode: status = 0, headers } = answer;
        collect(answer, () => sent.destroy()).then((text) => resolve({ status, headers, text }), fail);
      });
      sent.on("error", fail);
      sent.end(body);
    });
  };
}

/**
 * Connections that follow the content of `files`: programs that renew certificates rewrite the files and send this process no signal.
 * Throws what `files` throws.
 */
function agents(files: () => TlsFiles): () => Agent {
  let last: { readonly files: string; readonly agent: Agent } | undefined;
  return () => {
    const now = files();
    const text = JSON.stringify(now);
    // Idle connections of the former agent end after IDLE_MS.
    if (last?.files !== text) last = { files: text, agent: agentOf(now) };
    return last.agent;
  };
}

/** One TLS context for all connections: parsing the hundreds of authorities of a system takes time. */
function agentOf(files: TlsFiles): Agent {
  // Node's default authorities are those it was built with. Authorities that the site added to the system would be missing.
  const system = files.ca === undefined ? getCACertificates("system") : [];
  const secureContext = createSecureContext({ ...files, ...(system.length === 0 ? {} : { ca: system }) });
  return new (nodeHttps().Agent)({ secureContext, keepAlive: true, timeout: IDLE_MS });
}

/** Node's error codes for a certificate whose authority is unknown here. */
const UNKNOWN_AUTHORITY: ReadonlySet<unknown> = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);
/** OpenSSL's error format: code, library, function, reason, line of its source. */
const OPENSSL = /error:[0-9A-F]{8}:[^:]*:[^:]*:([^:]+)/;
const WANTS_CERTIFICATE = /certificate required|handshake failure/;

/**
 * One line on why a call failed. Node's own advice for unknown authorities is a command-line option, which a daemon's operator cannot set.
 */
function whyOf(cause: unknown): string {
  const message = messageOf(cause);
  if (UNKNOWN_AUTHORITY.has((cause as { code?: unknown } | null)?.code))
    return `${message.split(";")[0]}; name its authority's certificate in caFile`;
  const reason = OPENSSL.exec(message)?.[1];
  if (reason === undefined) return message.trim();
  return `TLS: ${reason}${WANTS_CERTIFICATE.test(reason) ? "; where it asks for a certificate of this node, name certFile and keyFile" : ""}`;
}
