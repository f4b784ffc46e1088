import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type HttpRequest, isStream, type Wire } from "@nodeyard/driver";
import { systemClock } from "@nodeyard/runtime";
import type { Asked } from "./double/answers.ts";
import { AzureDouble, textOf } from "./double/azure.ts";
import type { AzureSettings } from "./double/settings.ts";

/** The address of a double that is asked in this process. */
export const HERE = "https://azure.example";

/** Connections to a double in this process. */
export function wireTo(double: AzureDouble): Wire {
  const ask = async ({ method, url, headers, body = "", signal }: HttpRequest) => {
    signal.throwIfAborted();
    const parts: Buffer[] = isStream(body) ? [] : [Buffer.from(body)];
    if (isStream(body)) for await (const part of body) parts.push(Buffer.from(part));
    return double.ask({ method, url: new URL(url), headers, body: Buffer.concat(parts) });
  };
  return {
    async send(request) {
      const answer = await ask(request);
      if (answer === "silence")
        return new Promise((_, reject) => {
          const end = () => reject(request.signal.reason);
          request.signal.addEventListener("abort", end, { once: true });
        });
      if (answer === null) throw new Error("other side closed");
      return { status: answer.status, headers: answer.headers ?? {}, text: textOf(answer) };
    },
    stream: () => Promise.reject(new Error("nothing is streamed")),
    close: async () => {},
  };
}

/** A double that listens on a free loopback port. */
export async function startAzure(settings: Partial<AzureSettings> = {}) {
  const double = new AzureDouble(systemClock, settings);
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const headers = request.headers as Asked["headers"];
    const url = new URL(request.url!, `http://${headers.host}`);
    const answer = await double.ask({ method: request.method!, url, headers, body: Buffer.concat(parts) });
    if (answer === "silence") return;
    if (answer === null) return void request.socket.destroy();
    response.writeHead(answer.status, {
      "content-type": "application/json; charset=utf-8",
      ...answer.headers,
    });
    response.end(textOf(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    double,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
