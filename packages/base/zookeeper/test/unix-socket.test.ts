import { mkdtemp, rm } from "node:fs/promises";
import { connect as connectTcp, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { requireZooKeeper, startZooKeeper } from "../../../../testing/zookeeper/index.ts";
import { UnixConnector } from "../src/index.ts";
import { client, closeClients } from "./support.ts";

test.skipIf(requireZooKeeper())("a server behind a Unix socket is a server like any other", async () => {
  const server = await startZooKeeper();
  const folder = await mkdtemp(join(tmpdir(), "nodeyard-unix-"));
  const path = join(folder, "tree.sock");
  const sockets = new Set<Socket>();
  const door = createServer((socket) => {
    const behind = connectTcp(server.port, server.host);
    for (const one of [socket, behind]) sockets.add(one.on("error", () => undefined));
    socket.pipe(behind).pipe(socket);
  });
  await new Promise<void>((resolve) => {
    door.listen(path, resolve);
  });
  try {
    const zk = await client("localhost/zookeeper", { connector: new UnixConnector(path) });
    expect((await zk.children("/")).children).toContain("quota");
    await closeClients();
  } finally {
    for (const socket of sockets) socket.destroy();
    door.close();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
});
