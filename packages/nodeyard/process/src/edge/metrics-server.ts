import { messageOf, nodeHttp } from "@nodeyard/runtime";
import { ProcessError } from "../errors.ts";

/** Serves `page` at `/metrics` and nothing else, for a process without Nodeyard's own web interface. Rejects with ProcessError. */
export async function listenMetrics(
  { host, port }: { readonly host: string; readonly port: number },
  page: () => Promise<{ readonly type: string; readonly text: string }>,
): Promise<{ close(): Promise<void> }> {
  const server = nodeHttp().createServer((request, reply) => {
    request.resume();
    if (request.url !== "/metrics") return void reply.writeHead(404).end("see /metrics\n");
    page().then(
      ({ type, text }) => reply.writeHead(200, { "content-type": type }).end(text),
      (error: unknown) => reply.writeHead(500).end(`${messageOf(error)}\n`),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) =>
      reject(
        new ProcessError(
          "process.metrics",
          `cannot listen on ${host}:${port} (${messageOf(cause)}); choose another address for metrics`,
          {
            cause,
          },
        ),
      ),
    );
    server.listen({ host, port }, resolve);
  });
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
