import { afterAll, describe, expect, test } from "vitest";
import { requireZooKeeper, startZooKeeper } from "../../../../testing/zookeeper/index.ts";
import { DataLost, wire, ZooKeeper } from "../src/index.ts";
import { FakeServer, ManualClock } from "./fake-server.ts";
import { client, closeClients, SHORT_SESSION_MS, states, until } from "./support.ts";

const { OpCode } = wire;

describe.skipIf(requireZooKeeper())("a ZooKeeper that comes back without its data", () => {
  afterAll(closeClients);

  test("is named with both changes; with its data it is taken back with the same session", async () => {
    const server = await startZooKeeper();
    const zk = await client(server, { sessionTimeoutMs: SHORT_SESSION_MS, reconnectMaxMs: 200 });
    const { id } = zk.session;
    const seen = states(zk);
    for (let i = 0; i < 20; i++) await zk.create(`/n${i}`);
    await server.kill();
    const empty = await startZooKeeper({ port: server.plainPort });
    const lost = await until("named", () => seen.find(({ cause }) => cause instanceof DataLost));
    expect(lost.cause?.message).toMatch(/127\.0\.0\.1:\d+: its newest change is 0x\w, .* has seen 0x1\w/);
    expect(lost.state).toBe("suspended");
    await empty.stop();
    await server.restart();
    await until("connected again", () => zk.session.state === "connected");
    expect(zk.session).toMatchObject({ id, epoch: 1 });
    await server.stop();
  });
});

test("servers that answer nobody for a long time, and are not behind, are taken back with the same session", async () => {
  const clock = new ManualClock();
  const server = new FakeServer();
  const zk = new ZooKeeper("a:1", { clock, connector: server, reconnectBaseMs: 100, reconnectMaxMs: 1_000 });
  await zk.connect();
  const { welcome } = server;
  const asked = () => server.connects.slice(-2).map(({ sessionId }) => sessionId);
  // As a server without a quorum, or with too many connections, does.
  server.welcome = () => {
    queueMicrotask(() => server.cut());
    return undefined;
  };
  server.cut();
  await clock.pass(8_000);
  expect(asked()).toEqual([7n, 7n]);
  await clock.pass(10_000);
  // Each other attempt asks for a session of its own, which would tell how old the data is.
  expect(asked().sort()).toEqual([0n, 7n]);

  server.welcome = (request) =>
    request.sessionId === 0n ? { ...welcome!(request)!, sessionId: 8n } : undefined;
  const goodbye = () => server.received.find(({ type }) => type === OpCode.closeSession);
  while (goodbye() === undefined) await clock.pass(100);
  const { xid } = goodbye()!;
  server.welcome = welcome;
  server.frame((w) => wire.replyHeader.write(w, { xid, zxid: 99n, err: 0 }));
  await clock.pass(2_000);
  expect(zk.session).toMatchObject({ state: "connected", id: 7n, epoch: 1 });
});
