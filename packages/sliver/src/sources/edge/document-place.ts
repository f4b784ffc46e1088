import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { messageOf } from "@nodeyard/runtime";
import { SourceAnswerError, SourceUnreachableError } from "../errors.ts";
import type { DocumentPlace } from "../signed.ts";

const MAX_REPLY = 16 * 1024 * 1024;
const MAX_ETAG = 512;

/** PEM texts. */
export interface TlsFiles {
  /** Authorities that may vouch for the place; absent: the system's. */
  readonly ca?: string;
  /** This node's own certificate and key, for places that ask. */
  readonly cert?: string;
  readonly key?: string;
}

interface Reply {
  readonly status: number;
  readonly etag: string | undefined;
  readonly text: string;
}

/** Over HTTPS; plain HTTP to this machine only, in tests. Redirects are not followed. */
export function httpPlace(
  urls: { readonly url: string; readonly reportUrl?: string },
  tls: TlsFiles,
): DocumentPlace {
  const { url, reportUrl } = urls;
  const fetch: DocumentPlace["fetch"] = async (etag, signal) => {
    const headers = { accept: "application/json", ...(etag === undefined ? {} : { "if-none-match": etag }) };
    const reply = await call("GET", url, headers, undefined, tls, signal);
    if (reply.status === 304 && etag !== undefined) return undefined;
    if (reply.status !== 200) throw new SourceAnswerError(`${url}: HTTP ${reply.status}`);
    return { text: reply.text, etag: reply.etag };
  };
  if (reportUrl === undefined) return { fetch };
  return {
    fetch,
    async report(text, signal) {
      const headers = {
        "content-type": "application/json",
        "content-length": String(Buffer.byteLength(text)),
      };
      const { status } = await call("PUT", reportUrl, headers, text, tls, signal);
      if (status < 200 || status > 299) throw new SourceAnswerError(`${reportUrl}: HTTP ${status}`);
    },
  };
}

function call(
  method: string,
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string | undefined,
  tls: TlsFiles,
  signal: AbortSignal,
): Promise<Reply> {
  const request = url.startsWith("https:") ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown) =>
      reject(
        new SourceUnreachableError(`${url}: ${messageOf(signal.aborted ? signal.reason : cause)}`, { cause }),
      );
    const sent = request(url, { method, headers, ...tls, signal }, (answer) => {
      read(
        answer,
        (cause) => sent.destroy(cause),
        fail,
        (text) => {
          const { etag } = answer.headers;
          const known = etag !== undefined && etag.length <= MAX_ETAG ? etag : undefined;
          resolve({ status: answer.statusCode ?? 0, etag: known, text });
        },
      );
    });
    sent.on("error", fail);
    sent.end(body);
  });
}

function read(
  answer: IncomingMessage,
  stop: (cause: Error) => void,
  fail: (cause: unknown) => void,
  done: (text: string) => void,
): void {
  const chunks: Buffer[] = [];
  let size = 0;
  answer.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size > MAX_REPLY) stop(new Error("the answer is too long"));
    else chunks.push(chunk);
  });
  answer.on("error", fail);
  answer.on("end", () => done(Buffer.concat(chunks).toString("utf8")));
}
