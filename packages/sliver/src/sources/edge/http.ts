import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { Agent, request as httpsRequest } from "node:https";
import { createSecureContext, getCACertificates } from "node:tls";
import { messageOf } from "@nodeyard/runtime";
import { PlcTimeoutError, SourceAnswerError, SourceUnreachableError } from "../../errors.ts";
import type { Post } from "../plc.ts";
import type { DocumentEndpoint } from "../signed.ts";

/** PEM texts. */
export interface TlsFiles {
  /** Authorities that may sign the server's certificate; absent: the system's. */
  readonly ca?: string;
  /** This node's own certificate and key, for servers that ask. */
  readonly cert?: string;
  readonly key?: string;
}

/** Milliseconds that a connection is kept for the next call: a poll and its report. */
const IDLE_MS = 5_000;
/** Bytes. */
const MAX_REPLY = 16 * 1024 * 1024;
/** Characters. */
const MAX_ETAG = 512;
const MAX_LOCATION = 300;

/** Calls of PLC. HTTPS; plain HTTP to this machine only, in tests. Rejects with PlcTimeoutError. */
export function httpPost(url: string, files: () => TlsFiles): Post {
  const send = caller(files, PlcTimeoutError);
  return async (body, signal) => {
    const { status, text } = await send("POST", url, { "content-type": "text/xml" }, signal, body);
    if (status !== 200) throw new PlcTimeoutError(`${url}: HTTP ${status}`);
    return text;
  };
}

/** Documents and reports. HTTPS; plain HTTP to this machine only, in tests. Redirects are not followed. */
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

function refusal(url: string, status: number, { location }: IncomingHttpHeaders): SourceAnswerError {
  const moved = location && ` to ${location.slice(0, MAX_LOCATION)}; configure that URL instead`;
  return new SourceAnswerError(`${url}: HTTP ${status}${moved ?? ""}`);
}

interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Makes calls, each with the certificates that the files hold at that moment. What fails rejects with a `Failure`. */
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
      const sent = (isTls ? httpsRequest : httpRequest)(url, options, (answer) => {
        const chunks: Buffer[] = [];
        let size = 0;
        answer.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size > MAX_REPLY) sent.destroy(new Error("the answer is too long"));
          else chunks.push(chunk);
        });
        answer.on("error", fail);
        answer.on("end", () => {
          const text = Buffer.concat(chunks).toString("utf8");
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text });
        });
      });
      sent.on("error", fail);
      sent.end(body);
    });
  };
}

/**
 * Connections by what `files` holds at each call: whoever renews a certificate rewrites its file, without a signal to this process. Throws
 * what `files` throws.
 */
function agents(files: () => TlsFiles): () => Agent {
  let last: { readonly files: string; readonly agent: Agent } | undefined;
  return () => {
    const now = files();
    const text = JSON.stringify(now);
    // The former agent's idle connections end by themselves.
    if (last?.files !== text) last = { files: text, agent: agentOf(now) };
    return last.agent;
  };
}

/** One context of `files` for all connections: the system's authorities are hundreds. */
function agentOf(files: TlsFiles): Agent {
  // Node's default are the authorities that it was built with, without those that the site added to the system.
  const system = files.ca === undefined ? getCACertificates("system") : [];
  const secureContext = createSecureContext({ ...files, ...(system.length === 0 ? {} : { ca: system }) });
  return new Agent({ secureContext, keepAlive: true, timeout: IDLE_MS });
}

/** Node's codes for a certificate whose authority is not known here. */
const UNKNOWN_AUTHORITY: ReadonlySet<unknown> = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);
/** OpenSSL's messages: a number of its queue, function, reason, a line of its sources. */
const OPENSSL = /error:[0-9A-F]{8}:[^:]*:[^:]*:([^:]+)/;
const WANTS_CERTIFICATE = /certificate required|handshake failure/;

/** Why a call failed, in one line. Node's own remedy for authorities is a command-line option, which a daemon's user cannot set. */
function whyOf(cause: unknown): string {
  const message = messageOf(cause);
  if (UNKNOWN_AUTHORITY.has((cause as { code?: unknown } | null)?.code))
    return `${message.split(";")[0]}; name its authority's certificate in caFile`;
  const reason = OPENSSL.exec(message)?.[1];
  if (reason === undefined) return message.trim();
  return `TLS: ${reason}${WANTS_CERTIFICATE.test(reason) ? "; where it asks for a certificate of this node, name certFile and keyFile" : ""}`;
}
