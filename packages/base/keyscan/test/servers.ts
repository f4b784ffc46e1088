import { createServer, type Server, type Socket } from "node:net";

export interface TestServer {
  readonly port: number;
  readonly connections: () => number;
  stop(): Promise<void>;
}

/** A TCP server on a free loopback port that treats each connection with `onSocket`. */
export async function serve(onSocket: (socket: Socket) => void, port = 0): Promise<TestServer> {
  const sockets = new Set<Socket>();
  let count = 0;
  const server: Server = createServer((socket) => {
    count++;
    sockets.add(socket);
    socket.on("error", () => {});
    onSocket(socket);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    port: address.port,
    connections: () => count,
    stop: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
