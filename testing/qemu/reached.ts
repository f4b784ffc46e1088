import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { networkInterfaces } from "node:os";

/** Connections that reached a listener on this host's loopback when the guest tried every address that user-mode networking offers. */
export async function reached(say: (command: string) => Promise<string>): Promise<readonly string[]> {
  const came: string[] = [];
  const server = createServer((socket) => {
    came.push(socket.remoteAddress ?? "somebody");
    socket.destroy();
  });
  server.listen(0, "0.0.0.0");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  try {
    const own = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
    const targets = [
      "10.0.2.2",
      ...own.filter(({ family }) => family === "IPv4").map(({ address }) => address),
    ];
    for (const target of targets) await say(`nc -w 2 ${target} ${port} </dev/null >/dev/null 2>&1; true`);
    // The listener itself works.
    const knock = connect(port, "127.0.0.1");
    await once(knock, "close");
    return came.slice(0, -1);
  } finally {
    server.close();
  }
}
