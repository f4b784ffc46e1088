import { afterEach, describe, expect, test } from "vitest";
import {
  freePort,
  requireZooKeeper,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../testing/zookeeper/index.ts";
import { connect, NotReadOnly } from "../src/index.ts";
import { client, closeClients, errorOf, states, until } from "./support.ts";

describe.skipIf(requireZooKeeper())("a member of an ensemble that has no quorum", () => {
  const servers: ZooKeeperServer[] = [];

  afterEach(async () => {
    await closeClients();
    await Promise.all(servers.splice(0).map((server) => server.stop()));
  });

  test("gives read-only sessions to those who ask for them, and they end when the quorum is back", async () => {
    // Without local sessions ZooKeeper 3.8 refuses the very request for a session in this mode, and says nothing.
    const config: Record<string, string> = { localSessionsEnabled: "true" };
    for (const id of [1, 2, 3]) config[`server.${id}`] = `127.0.0.1:${await freePort()}:${await freePort()}`;
    const start = async (myid: number): Promise<ZooKeeperServer> => {
      const jvm = ["-Dreadonlymode.enabled=true"];
      const server = await startZooKeeper({ myid, config, wait: false, jvm });
      servers.push(server);
      return server;
    };
    const one = await start(1);
    const reader = await client(one, { allowReadOnly: true, reconnectMaxMs: 200 });
    expect(reader.session).toMatchObject({ readOnly: true, epoch: 1 });
    expect((await reader.children("/")).children).toEqual(["zookeeper"]);
    const refused = await errorOf(reader.create("/a"));
    expect(refused).toBeInstanceOf(NotReadOnly);
    expect(refused).toMatchObject({ outcome: "none" });

    const unasked = connect(`${one.host}:${one.port}`, { deadlineMs: 500 });
    expect(await errorOf(unasked)).toMatchObject({ code: "zookeeper.deadline_exceeded" });

    const changes = states(reader);
    await start(2);
    await until("a session that may write", () => reader.session.epoch === 2 && !reader.session.readOnly);
    expect(changes.map(({ state }) => state).slice(0, 2)).toEqual(["suspended", "expired"]);
    expect((await reader.create("/a")).path).toBe("/a");
  });
});
