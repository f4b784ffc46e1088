import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type Ensemble, requireZooKeeper, startEnsemble } from "../../../../../testing/zookeeper/index.ts";
import { ConnectionLost, connect as connectTo, lock, tryLock, type ZooKeeper } from "../../src/index.ts";
import { until } from "./support.ts";
import { contents, record } from "./tree-cache-support.ts";

describe.skipIf(requireZooKeeper())("recipes on an ensemble", () => {
  let ensemble: Ensemble;
  let clients: ZooKeeper[] = [];
  beforeAll(async () => {
    ensemble = await startEnsemble(3);
  });
  afterEach(async () => {
    await Promise.all(clients.map((client) => client.close()));
    clients = [];
  });
  afterAll(() => ensemble.stop());

  async function connect(): Promise<ZooKeeper> {
    const client = await connectTo(ensemble.connectionString, { sessionTimeoutMs: 60_000 });
    clients.push(client);
    return client;
  }

  test("a killed leader costs no lock, no place in line and no change", async () => {
    const [holder, waiter, follower] = [await connect(), await connect(), await connect()];
    await holder.create("/root");
    await holder.create("/root/a", Buffer.from("1"));
    const held = await lock(holder, "/root/a/lock", { createParent: "parent-only" });
    const attempt = lock(waiter, "/root/a/lock");
    const { cache, changes } = record(follower, "/root");
    await cache.synced;
    await until("the waiter is seen in line", () => cache.size === 3);

    const leader = await ensemble.leader();
    await leader.kill();
    // Until there is a new leader a connection may be lost more than once.
    await until("the change is made", async () => {
      const failure = await holder.set("/root/a", Buffer.from("2")).then(
        () => undefined,
        (error) => error,
      );
      if (failure !== undefined && !(failure instanceof ConnectionLost)) throw failure;
      return failure === undefined;
    });
    await until("the change is seen", () => contents(cache).a === "2");
    expect(held.lost.aborted).toBe(false);
    expect(await tryLock(follower, "/root/a/lock")).toBeUndefined();

    await held.release();
    const second = await attempt;
    expect(second.lost.aborted).toBe(false);
    await until("one contender is left in the cache", () => cache.size === 2);
    expect(cache.get(second.path)).toEqual({});
    expect(changes.filter((change) => change.type === "remove" && change.path === "/root/a")).toEqual([]);
  });
});
