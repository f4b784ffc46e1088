import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Ensemble, requireZooKeeper, startEnsemble } from "../../../../testing/zookeeper/index.ts";
import { ConnectionLost, connect } from "../src/index.ts";
import { client, closeClients, errorOf, until } from "./support.ts";

describe.skipIf(requireZooKeeper())("an ensemble of three", () => {
  let ensemble: Ensemble;

  beforeAll(async () => {
    ensemble = await startEnsemble(3);
  });
  afterAll(async () => {
    await closeClients();
    await ensemble?.stop();
  });

  test("the leader is killed under load: sessions go on, nothing acknowledged is lost, nothing is there twice", async () => {
    const clients = await Promise.all(
      [1, 2, 3].map(() => client(ensemble.connectionString, { sessionTimeoutMs: 60_000 })),
    );
    const zk = clients[0]!;
    await zk.create("/load");
    await zk.create("/held", undefined, { ephemeral: true });
    const watched = new Set<string>();
    const watcher = clients[1]!;
    await watcher.addWatch("/load", "persistent-recursive", ({ path }) => watched.add(path));

    const acknowledged: string[] = [];
    const unknown: string[] = [];
    let next = 0;
    let stop = false;
    const work = clients.flatMap((one) =>
      Array.from({ length: 8 }, async () => {
        while (!stop) {
          const path = `/load/${next++}`;
          try {
            acknowledged.push((await one.create(path)).path);
          } catch (error) {
            expect(error).toBeInstanceOf(ConnectionLost);
            expect((error as ConnectionLost).outcome).toBe("unknown");
            unknown.push(path);
          }
        }
      }),
    );
    await until("some work", () => acknowledged.length > 300);
    await (await ensemble.leader()).kill();
    await until("all were hit or went on", () => clients.every((one) => one.session.state === "connected"));
    const before = acknowledged.length;
    await until("work after the election", () => acknowledged.length > before + 300);
    stop = true;
    await Promise.all(work);

    await zk.sync("/");
    const present = new Set((await zk.children("/load")).children.map((name) => `/load/${name}`));
    for (const path of acknowledged) expect(present.has(path)).toBe(true);
    for (const path of present) expect(acknowledged.includes(path) || unknown.includes(path)).toBe(true);
    expect(clients.map((one) => one.session.epoch)).toEqual([1, 1, 1]);
    expect((await zk.exists("/held"))?.ephemeralOwner).toBe(zk.session.id);
    const marker = (await zk.create("/load/last")).path;
    await watcher.sync("/");
    await until("the watch works on", () => watched.has(marker));
  });

  test("without a quorum no session is given, and the wait for one ends at its deadline", async () => {
    await (await ensemble.leader()).kill();
    const attempt = connect(ensemble.connectionString, { deadlineMs: 500, connectTimeoutMs: 100 });
    expect(await errorOf(attempt)).toMatchObject({ code: "zookeeper.deadline_exceeded" });
  });
});
