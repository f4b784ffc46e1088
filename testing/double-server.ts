import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

/** A request as it arrives at a double. */
export interface Arrived {
  readonly method: string;
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** What a double answers. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** The connection ends without an answer. */
export class Dropped extends Error {}

/** No answer comes. Rejects with the signal's reason. */
export function silence(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** A double that listens on a free loopback port: nothing is shared with other tests. */
export async function listen(
  cloud: { answer(arrived: Arrived, signal: AbortSignal): Promise<Answer> },
  port = 0,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const closed = new AbortController();
  const server = createServer(async (request, response) => {
    const gone = new AbortController();
    response.once("close", () => gone.abort(new Error("the caller is gone")));
    try {
      const signal = AbortSignal.any([gone.signal, closed.signal]);
      const { status, headers, text } = await cloud.answer(await arrivedOf(request), signal);
      response.writeHead(status, headers).end(text);
    } catch (error) {
      // Anything else is a fault of the double: the caller sees it.
      if (error instanceof Dropped || gone.signal.aborted || closed.signal.aborted) request.socket.destroy();
      else response.writeHead(500, { "content-type": "text/plain" }).end(String(error));
    }
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        closed.abort(new Error("the double ends"));
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

async function arrivedOf(request: IncomingMessage): Promise<Arrived> {
  const parts: Uint8Array[] = [];
  for await (const part of request) parts.push(part as Uint8Array);
  const headers = Object.entries(request.headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return {
    method: request.method ?? "GET",
    url: request.url ?? "/",
    headers: Object.fromEntries(headers) as Record<string, string>,
    body: Buffer.concat(parts),
  };
}
