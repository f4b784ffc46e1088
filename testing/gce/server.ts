import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "@nodeyard/runtime";
import type { Arrived } from "./double/answers.ts";
import { Dropped, GceCloud } from "./double/cloud.ts";

/** A double of Google Cloud that listens on a loopback port. */
export interface GceServer {
  readonly cloud: GceCloud;
  /** For `api-endpoint`, and with `metadataHost` for the metadata server. */
  readonly url: string;
  /** `GCE_METADATA_HOST` of Google's libraries. */
  readonly metadataHost: string;
  close(): Promise<void>;
}

/** Starts one: nothing is shared with other tests. */
export async function startGce(port = 0): Promise<GceServer> {
  const cloud = new GceCloud(systemClock);
  const closed = new AbortController();
  const server = createServer(async (request, response) => {
    const gone = new AbortController();
    response.once("close", () => gone.abort(new Error("the caller is gone")));
    try {
      const { status, headers, text } = await cloud.answer(
        await arrivedOf(request),
        AbortSignal.any([gone.signal, closed.signal]),
      );
      response.writeHead(status, headers).end(text);
    } catch (error) {
      // Anything else is a fault of the double: the caller sees it.
      if (error instanceof Dropped || gone.signal.aborted || closed.signal.aborted) request.socket.destroy();
      else response.writeHead(500, { "content-type": "text/plain" }).end(String(error));
    }
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const metadataHost = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  cloud.url = `http://${metadataHost}`;
  return {
    cloud,
    url: cloud.url,
    metadataHost,
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
