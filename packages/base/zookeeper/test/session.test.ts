import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  requireZooKeeper,
  startProxy,
  startZooKeeper,
  type TcpProxy,
} from "../../../../testing/zookeeper/index.ts";
import {
  Aborted,
  BadArguments,
  Closed,
  ConnectionLost,
  connect,
  DeadlineExceeded,
  QueueFull,
  SessionExpired,
  TooLarge,
  ZooKeeper,
} from "../src/index.ts";
import { client, errorOf, freshPath, SHORT_SESSION_MS, serverHere, states, until } from "./support.ts";

describe.skipIf(requireZooKeeper())("the session", () => {
  const server = serverHere();
  let proxy: TcpProxy;
  let zk: ZooKeeper;

  beforeAll(async () => {
    zk = await client(server);
  });
  beforeEach(async () => {
    proxy = await startProxy(server);
  });
  afterEach(async () => {
    await proxy.close();
  });

  async function suspend(shaky: ZooKeeper): Promise<void> {
    proxy.refuse(true);
    proxy.cut();
    await until("suspended", () => shaky.session.state === "suspended");
  }

  test("reattaches after a cut: same id, same epoch, ephemerals kept", async () => {
    const shaky = await client(proxy);
    const path = await freshPath(zk);
    await shaky.create(`${path}/e`, undefined, { ephemeral: true });
    const { id } = shaky.session;
    const changes = states(shaky);
    proxy.cut();
    await until("reconnected", () => shaky.counters.connections === 2);
    expect(changes.map(({ state, reattached }) => [state, reattached])).toEqual([
      ["suspended", false],
      ["connected", true],
    ]);
    expect(changes[0]?.cause?.message).toContain(String(proxy.port));
    expect(shaky.session).toMatchObject({ id, epoch: 1 });
    expect((await shaky.exists(`${path}/e`))?.ephemeralOwner).toBe(id);
  });

  test("what is in flight fails at a cut, writes with an unknown outcome; what comes later waits", async () => {
    const shaky = await client(proxy);
    const path = await freshPath(zk);
    proxy.stall("to-client");
    const lost = [
      shaky.create(`${path}/a`),
      shaky.get(path),
      shaky.multi([{ op: "create", path: `${path}/b` }]),
    ].map(errorOf);
    await until("written", () => zk.exists(`${path}/b`));
    await suspend(shaky);
    const errors = await Promise.all(lost);
    for (const error of errors) expect(error).toBeInstanceOf(ConnectionLost);
    expect(errors).toMatchObject([{ outcome: "unknown" }, { outcome: "none" }, { outcome: "unknown" }]);
    const later = shaky.children(path);
    expect(shaky.queued).toBe(1);
    proxy.resume();
    proxy.refuse(false);
    expect([...(await later).children].sort()).toEqual(["a", "b"]);
  });

  test("an expired session is an event, then a new one; what waited fails, what comes after goes through", async () => {
    const shaky = await client(proxy, { sessionTimeoutMs: SHORT_SESSION_MS });
    const path = await freshPath(zk);
    await shaky.create(`${path}/e`, undefined, { ephemeral: true });
    const lost: string[] = [];
    await shaky.get(path, { watch: (event) => lost.push(event.type) });
    const lasting: string[] = [];
    await shaky.addWatch(path, "persistent", (event) => lasting.push(event.type));
    const { id } = shaky.session;
    const changes = states(shaky);
    let after: Promise<unknown> | undefined;
    shaky.onStatus(({ state }) => {
      if (state === "expired") after = shaky.create(`${path}/after`, undefined, { ephemeral: true });
    });
    await suspend(shaky);
    const waited = errorOf(shaky.set(path, Buffer.from("stale")));
    await until("expired", async () => (await zk.exists(`${path}/e`)) === undefined);
    proxy.refuse(false);
    const error = await waited;
    expect(error).toBeInstanceOf(SessionExpired);
    expect(error).toMatchObject({ outcome: "none" });
    await until("connected", () => shaky.session.state === "connected");
    expect(
      changes.map(({ state, epoch }) => `${state} ${epoch}`).filter((s) => !s.startsWith("suspended")),
    ).toEqual(["expired 1", "connecting 1", "connected 2"]);
    expect(changes.at(-1)?.reattached).toBe(false);
    expect(shaky.session.id).not.toBe(id);
    expect(lost).toEqual(["lost"]);
    expect(await after).toMatchObject({ stat: { ephemeralOwner: shaky.session.id } });
    await shaky.set(path, Buffer.from("new"));
    expect(lasting.at(-1)).toBe("data");
    expect(await errorOf(shaky.set(path, Buffer.alloc(0), { epoch: 1 }))).toBeInstanceOf(SessionExpired);
    await shaky.set(path, Buffer.alloc(0), { epoch: 2 });
  });

  test("an operation for one epoch that waits through an expiry is never sent to the next", async () => {
    const early = new ZooKeeper(`${proxy.host}:${proxy.port}`);
    const sent = errorOf(early.create("/never", undefined, { epoch: 7 }));
    expect(await sent).toBeInstanceOf(SessionExpired);
    const waits = errorOf(early.create("/never", undefined, { epoch: 0 }));
    await early.connect();
    expect(await waits).toBeInstanceOf(SessionExpired);
    expect(await early.exists("/never")).toBeUndefined();
    await early.close();
  });

  test("a server that falls silent is given up after two thirds of the session timeout", async () => {
    const shaky = await client(proxy, { sessionTimeoutMs: SHORT_SESSION_MS });
    const changes = states(shaky);
    proxy.stall();
    await until("suspended", () => changes.length > 0);
    expect(changes[0]?.cause?.message).toContain("no packet received");
    proxy.resume();
    await until("connected", () => shaky.session.state === "connected");
  });

  test("an idle session is kept alive by pings, and its trusted time moves on with them", async () => {
    const idle = await client(proxy, { sessionTimeoutMs: SHORT_SESSION_MS });
    const { id, lastAnsweredSentAt } = idle.session;
    await until("three pings", () => idle.session.lastAnsweredSentAt > lastAnsweredSentAt + SHORT_SESSION_MS);
    expect(idle.session).toMatchObject({ id, state: "connected", epoch: 1 });
    expect(idle.session.lastAnsweredSentAt).toBeLessThanOrEqual(performance.now());
    proxy.stall();
    const stuck = idle.session.lastAnsweredSentAt;
    await until("suspended", () => idle.session.state === "suspended");
    expect(idle.session.lastAnsweredSentAt).toBeLessThan(stuck + SHORT_SESSION_MS);
  });

  test("deadlines end operations that wait and those that are in flight", async () => {
    const shaky = await client(proxy);
    const path = await freshPath(zk);
    proxy.stall("to-client");
    const flying = await errorOf(shaky.set(path, Buffer.from("1"), { deadlineMs: 30 }));
    expect(flying).toBeInstanceOf(DeadlineExceeded);
    expect(flying).toMatchObject({ outcome: "unknown", path });
    const read = shaky.get(path);
    proxy.resume();
    expect((await read).data.toString()).toBe("1");
    await suspend(shaky);
    const waiting = await errorOf(shaky.set(path, Buffer.from("2"), { deadlineMs: 30 }));
    expect(waiting).toBeInstanceOf(DeadlineExceeded);
    expect(waiting).toMatchObject({ outcome: "none" });
    proxy.refuse(false);
    expect((await shaky.get(path)).data.toString()).toBe("1");
  });

  test("a signal ends an operation, sent or not, with its reason as cause", async () => {
    const shaky = await client(proxy);
    const path = await freshPath(zk);
    proxy.stall("to-client");
    const controller = new AbortController();
    const flying = errorOf(shaky.create(`${path}/a`, undefined, { signal: controller.signal }));
    controller.abort("enough");
    expect(await flying).toMatchObject({ code: "zookeeper.aborted", cause: "enough", outcome: "unknown" });
    const late = await errorOf(shaky.get(path, { signal: controller.signal }));
    expect(late).toBeInstanceOf(Aborted);
    expect(late).toMatchObject({ outcome: "none" });
    await suspend(shaky);
    const waits = new AbortController();
    const waiting = errorOf(shaky.delete(path, { signal: waits.signal }));
    waits.abort();
    expect(await waiting).toMatchObject({ outcome: "none" });
    expect(shaky.queued).toBe(0);
  });

  test("the queue is bounded, and writable() tells when there is room again", async () => {
    const shaky = await client(proxy, { maxQueued: 10 });
    const path = await freshPath(zk);
    await suspend(shaky);
    const kept = Array.from({ length: 10 }, () => shaky.exists(path));
    expect(await errorOf(shaky.exists(path))).toBeInstanceOf(QueueFull);
    let room = false;
    const writable = shaky.writable().then(() => {
      room = true;
    });
    await Promise.resolve();
    expect(room).toBe(false);
    proxy.resume();
    proxy.refuse(false);
    await Promise.all(kept);
    await writable;
  });

  test("no more requests are on the wire than allowed, and all are answered in order", async () => {
    const narrow = await client(server, { maxInFlight: 8 });
    const path = await freshPath(zk);
    const order: number[] = [];
    let most = 0;
    await Promise.all(
      Array.from({ length: 300 }, async (_, i) => {
        const done = narrow.create(`${path}/${i}`);
        most = Math.max(most, narrow.inFlight);
        await done;
        order.push(i);
      }),
    );
    expect(most).toBe(8);
    expect(order).toEqual(Array.from({ length: 300 }, (_, i) => i));
    expect((await narrow.children(path)).children.length).toBe(300);
  });

  test("a request that no server takes is refused alone; the connection stays", async () => {
    const path = await freshPath(zk);
    const error = await errorOf(zk.set(path, Buffer.alloc(0x100000)));
    expect(error).toBeInstanceOf(TooLarge);
    expect(error).toMatchObject({ outcome: "none", path });
    expect(zk.session.state).toBe("connected");
    expect((await zk.get(path)).data.length).toBe(0);
  });

  test("close answers what is in flight, fails what comes later, and ends the session at the server", async () => {
    const path = await freshPath(zk);
    const leaving = await client(server);
    const made = leaving.create(`${path}/e`, undefined, { ephemeral: true });
    const closed = leaving.close();
    expect(await errorOf(leaving.get(path))).toBeInstanceOf(Closed);
    expect((await made).path).toBe(`${path}/e`);
    await closed;
    await leaving.close();
    expect(leaving.session.state).toBe("closed");
    expect(await zk.exists(`${path}/e`)).toBeUndefined();
    expect(await errorOf(leaving.connect())).toBeInstanceOf(Closed);
  });

  test("close while suspended ends at once and fails what waits", async () => {
    const shaky = await client(proxy);
    await suspend(shaky);
    const waiting = errorOf(shaky.get("/"));
    await shaky.close();
    expect(await waiting).toBeInstanceOf(Closed);
  });

  test("drain waits for everything", async () => {
    const path = await freshPath(zk);
    let ended = 0;
    for (let i = 0; i < 100; i++) {
      void zk.create(`${path}/${i}`).then(() => {
        ended++;
      });
    }
    await zk.drain();
    expect(zk.inFlight + zk.queued).toBe(0);
    await Promise.resolve();
    expect(ended).toBe(100);
  });

  test("connect tries on until its deadline, and says what was wrong", async () => {
    proxy.refuse(true);
    const error = await errorOf(connect(`${proxy.host}:${proxy.port}`, { deadlineMs: 3_000 }));
    expect(error).toBeInstanceOf(DeadlineExceeded);
    expect(String((error as Error).cause)).toContain(String(proxy.port));
  });

  test("operations before connect wait for it", async () => {
    const early = new ZooKeeper(`${server.host}:${server.port}`);
    const answer = early.exists("/zookeeper");
    await early.connect();
    expect(await answer).toBeDefined();
    await early.close();
  });

  test("the status iterator tells the present and every change, and ends with the client", async () => {
    const shaky = await client(proxy);
    const seen: string[] = [];
    const reading = (async () => {
      for await (const { state } of shaky.status()) seen.push(state);
    })();
    proxy.cut();
    await until("reconnected", () => shaky.counters.connections === 2);
    await shaky.close();
    await reading;
    expect(seen).toEqual(["connected", "suspended", "connected", "closed"]);
  });

  test("setServers moves to other servers at the next connection and keeps the chroot", async () => {
    const shaky = await client(proxy);
    expect(() => shaky.setServers("localhost:1/elsewhere")).toThrow(BadArguments);
    shaky.setServers(`${server.host}:${server.port}`);
    proxy.refuse(true);
    proxy.cut();
    await until("connected elsewhere", () => shaky.counters.connections === 2);
    expect(shaky.session.epoch).toBe(1);
  });

  test("a restart of the server is survived with the session", async () => {
    const own = await startZooKeeper();
    const lasting = await client(own, { sessionTimeoutMs: 100_000 });
    await lasting.create("/e", undefined, { ephemeral: true });
    const { id } = lasting.session;
    await own.restart();
    expect((await lasting.exists("/e"))?.ephemeralOwner).toBe(id);
    expect(lasting.session.epoch).toBe(1);
    await lasting.close();
    await own.stop();
  });

  test("the error of a listener is reported, and other listeners are called as before", async () => {
    const path = await freshPath(zk);
    const surfaced: unknown[] = [];
    const catcher = (error: unknown) => surfaced.push(error);
    const others = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    process.on("uncaughtException", catcher);
    try {
      zk.submit({ type: 3, path, watch: false }, () => {
        throw new Error("a bug of mine");
      });
      await zk.exists(path);
      await until("surfaced", () => surfaced.length === 1);
    } finally {
      process.removeListener("uncaughtException", catcher);
      for (const listener of others) process.on("uncaughtException", listener);
    }
    expect(String(surfaced[0])).toContain("a bug of mine");
    expect(zk.session.state).toBe("connected");
  });
});
