import { request as httpRequest, type IncomingMessage } from "node:http";
import { type Agent, request as httpsRequest } from "node:https";
import { SourceAnswerError, SourceUnreachableError } from "../errors.ts";
import type { DocumentEndpoint } from "../signed.ts";
import { agents, type TlsFiles } from "./agent.ts";
import { whyOf } from "./why.ts";

const MAX_REPLY = 16 * 1024 * 1024;
const MAX_ETAG = 512;
const MAX_LOCATION = 300;

interface Reply {
  readonly status: number;
  readonly etag: string | undefined;
  /** Where a redirect leads, for people. */
  readonly moved: string;
  readonly text: string;
}

/** Over HTTPS; plain HTTP to this machine only, in tests. Redirects are not followed. */
export function httpPlace(
  urls: { readonly url: string; readonly reportUrl?: string },
  files: () => TlsFiles,
): DocumentEndpoint {
  const agent = agents(files);
  const { url, reportUrl } = urls;
  const fetch: DocumentEndpoint["fetch"] = async (etag, signal) => {
    const headers = { accept: "application/json", ...(etag === undefined ? {} : { "if-none-match": etag }) };
    const reply = await call("GET", url, headers, undefined, agent(), signal);
    if (reply.status === 304 && etag !== undefined) return undefined;
    if (reply.status !== 200) throw new SourceAnswerError(`${url}: HTTP ${reply.status}${reply.moved}`);
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
      const { status, moved } = await call("PUT", reportUrl, headers, text, agent(), signal);
      if (status < 200 || status > 299) throw new SourceAnswerError(`${reportUrl}: HTTP ${status}${moved}`);
    },
  };
}

function call(
  method: string,
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string | undefined,
  agent: Agent,
  signal: AbortSignal,
): Promise<Reply> {
  const isTls = url.startsWith("https:");
  const request = isTls ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown) =>
      reject(
        new SourceUnreachableError(`${url}: ${whyOf(signal.aborted ? signal.reason : cause)}`, { cause }),
      );
    const sent = request(url, { method, headers, ...(isTls ? { agent } : {}), signal }, (answer) => {
      read(
        answer,
        (cause) => sent.destroy(cause),
        fail,
        (text) => {
          const { etag, location } = answer.headers;
          const known = etag !== undefined && etag.length <= MAX_ETAG ? etag : undefined;
          const moved =
            location === undefined
              ? ""
              : ` to ${location.slice(0, MAX_LOCATION)}; configure that URL instead`;
          resolve({ status: answer.statusCode ?? 0, etag: known, moved, text });
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
