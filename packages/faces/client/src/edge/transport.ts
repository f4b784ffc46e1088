import { Readable } from "node:stream";
import { nodeHttp } from "@nodeyard/runtime";

/** Sends one HTTP request, like `fetch`. */
export type Transport = (url: string, init: TransportInit) => Promise<Response>;

/** One HTTP request as the client gives it to its transport. The body is JSON text. */
export interface TransportInit {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** Over TCP. A redirect is an error, because it could send the token to another server. */
export const byTcp: Transport = (url, init) => fetch(url, { ...init, redirect: "error" });

/** Over the Unix socket at `socketPath`; Node's `fetch` cannot connect to one. */
export function bySocket(socketPath: string): Transport {
  return (url, { method, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const { pathname, search } = new URL(url);
      const sent = nodeHttp().request({
        socketPath,
        path: pathname + search,
        method,
        headers,
        signal,
        agent: false,
      });
      sent.once("error", reject);
      sent.once("response", (reply) => {
        const { statusCode: status = 500 } = reply;
        const flat = Object.entries(reply.headers).map(([name, value]) => [name, String(value)] as const);
        const hasBody = ![204, 205, 304].includes(status);
        // A reply without a body must also be read to its end. Otherwise the socket is not released.
        if (!hasBody) reply.resume();
        const stream = hasBody ? (Readable.toWeb(reply) as ReadableStream) : null;
        resolve(new Response(stream, { status, headers: Object.fromEntries(flat) }));
      });
      sent.end(body);
    });
}
