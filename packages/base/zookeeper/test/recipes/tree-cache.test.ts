import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  kazoo,
  requireZooKeeper,
  startProxy,
  type TcpProxy,
} from "../../../../../testing/zookeeper/index.ts";
import { Closed, openTreeCache, tryLock, type ZooKeeper } from "../../src/index.ts";
import { closeAll, connect, freshPath, SHORT_SESSION_MS, serverHere, until } from "./support.ts";
import { contents, record, Traffic, texts } from "./tree-cache-support.ts";

describe.skipIf(requireZooKeeper())("tree cache", () => {
  const server = serverHere();
  let proxy: TcpProxy;
  let writer: ZooKeeper;
  let root: string;
  let traffic: Traffic;
  beforeEach(async () => {
    proxy = await startProxy(server);
    writer = await connect(server);
    root = await freshPath(writer);
    traffic = new Traffic();
  });
  afterEach(async () => {
    proxy.refuse(false);
    await closeAll();
    await proxy.close();
  });

  const put = (name: string, text: string) => writer.create(`${root}/${name}`, Buffer.from(text));
  const lockOf = (name: string) => `${root}/${name}/lock`;

  test("the first walk reads each record once, lists what may hold more, and never reads a lock", async () => {
    for (let i = 0; i < 20; i++) await put(`n${i}`, `${i}`);
    for (let i = 0; i < 5; i++) await tryLock(writer, lockOf(`n${i}`), { createParent: "parent-only" });
    const { cache, changes } = record(await traffic.connect(server), root);
    await cache.synced;
    expect(cache.size).toBe(25);
    // One listing for the root; for each locked record one of it and one of its lock parent.
    expect(traffic.count()).toEqual({ get: 20, exists: 0, children: 11, watch: 1 });
    expect(traffic.read.filter((path) => path.includes("/lock"))).toEqual([]);
    expect(changes.at(-1)).toEqual({ type: "synced" });
    expect(changes.filter(({ type }) => type === "put")).toHaveLength(25);
  });

  test("follows changes with one read per change of data, and none for locks", async () => {
    await put("a", "1");
    const { cache, changes } = record(await traffic.connect(server), root);
    await cache.synced;
    changes.length = 0;
    traffic.reset();
    await put("b", "1");
    const held = await tryLock(writer, lockOf("b"), { createParent: "parent-only" });
    await until("the lock is seen", () => changes.length === 2);
    await writer.set(`${root}/a`, Buffer.from("2"));
    await until("the change is seen", () => changes.length === 3);
    await held!.release();
    await writer.delete(lockOf("b"));
    await writer.delete(`${root}/b`);
    await until("the end is seen", () => changes.length === 5);
    const contender = held!.path.slice(root.length + 1);
    expect(texts(changes, root)).toEqual([
      "put b=1",
      `put ${contender}`,
      "put a=2",
      `remove ${contender}`,
      "remove b",
    ]);
    expect(traffic.count()).toEqual({ get: 2, exists: 0, children: 0, watch: 0 });
    expect(contents(cache)).toEqual({ a: "2" });
  });

  test("sees what kazoo does", async () => {
    const { cache, changes } = record(await connect(server), root);
    await cache.synced;
    const script = `
c = client(args[0])
for i in range(50):
    path = c.create(args[1] + "/", b"%d" % i, sequence=True)
    lock = c.Lock(path + "/lock", "python")
    lock.acquire()
    c.set(path, b"taken")
    if i % 2:
        lock.release()
        c.delete(path, recursive=True)
c.stop()
`;
    await kazoo(script, [`${server.host}:${server.port}`, root]);
    await until("kazoo's session has ended and all is seen", () => cache.size === 25);
    expect(new Set(Object.values(contents(cache)))).toEqual(new Set(["taken"]));
    expect(changes.filter(({ type }) => type === "gap")).toEqual([]);
  });

  test("a root that does not exist yet is followed all the same", async () => {
    const missing = `${root}/later`;
    const cache = openTreeCache(await connect(server), missing, {
      interest: () => "data",
      onChange: () => undefined,
    });
    await cache.synced;
    expect(cache.size).toBe(0);
    await writer.create(missing, Buffer.from("root"));
    await writer.create(`${missing}/x`, Buffer.from("below"));
    await until("both are there", () => cache.size === 2);
    await writer.deleteRecursive(missing);
    await until("both are gone", () => cache.size === 0);
  });

  test.each([
    ["some of which exist", ["a", "absent"], 2, ["a/x"]],
    ["none of which exists", ["absent"], 1, []],
    ["below which nothing is wanted", ["leaf"], 0, []],
  ])(
    "names below the root that the owner knows, %s, are visited without a list of the root",
    async (_, names, listed, found) => {
      for (const name of ["a", "leaf", "other"]) {
        await put(name, "");
        await put(`${name}/x`, name);
      }
      const { cache } = record(await traffic.connect(server), root, {
        interest: (path) => (path.endsWith("/x") ? "data" : "none"),
        only: (path) => (path === root ? names : undefined),
        descend: (path) => !path.endsWith("/leaf"),
      });
      await cache.synced;
      await cache.resync();
      expect(Object.keys(contents(cache))).toEqual(found);
      expect(traffic.count().children).toBe(2 * listed);
    },
  );

  test.each([["reconnect"], ["new session"]])(
    "after a %s it compares, and reads only what differs",
    async (how) => {
      for (let i = 0; i < 30; i++) await put(`n${i}`, "old");
      const held = await tryLock(writer, lockOf("n0"), { createParent: "parent-only" });
      const client = await traffic.connect(proxy, {
        sessionTimeoutMs: how === "reconnect" ? 60_000 : SHORT_SESSION_MS,
      });
      const { cache, changes } = record(client, root);
      await cache.synced;
      const { epoch } = client.session;
      const alive = `${root}-alive`;
      await client.create(alive, undefined, { ephemeral: true });
      changes.length = 0;
      proxy.refuse(true);
      proxy.cut();
      await until("the gap is told", () => changes.length === 1);
      expect(cache.size).toBe(31);
      if (how === "new session") {
        await until("the session is over", async () => (await writer.exists(alive)) === undefined);
      }
      await writer.set(`${root}/n1`, Buffer.from("new"));
      await writer.delete(`${root}/n2`);
      await writer.delete(`${root}/n3`);
      await put("n3", "again");
      await put("m", "more");
      await held!.release();
      traffic.reset();
      proxy.refuse(false);
      await until("it has caught up", () => changes.at(-1)?.type === "synced");
      expect(client.session.epoch).toBe(how === "reconnect" ? epoch : epoch + 1);
      const reported = texts(changes, root);
      expect(reported[0]).toBe("gap");
      expect([...reported.slice(1, -1)].sort()).toEqual(
        [
          `remove ${held!.path.slice(root.length + 1)}`,
          "remove n2",
          "put m=more",
          "put n1=new",
          "put n3=again",
        ].sort(),
      );
      // Of the 29 known records that are left one stat each, of the three that are new or changed the data.
      expect(traffic.count()).toMatchObject({ get: 3, exists: 29 });
      expect(traffic.read.sort()).toEqual([`${root}/m`, `${root}/n1`, `${root}/n3`]);

      changes.length = 0;
      await writer.set(`${root}/m`, Buffer.from("live"));
      await until("it follows again", () => changes.length === 1);
      expect(texts(changes, root)).toEqual(["put m=live"]);
    },
  );

  test("ends right, and never goes back, while many write and the connection breaks", async () => {
    const client = await connect(proxy);
    const { cache, changes } = record(client, root, { concurrency: 4 });
    await cache.synced;
    const writers = [writer, await connect(server), await connect(server)];
    let seed = 7;
    const chance = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor((seed / 2_147_483_648) * below);
    };
    for (let round = 0; round < 60; round++) {
      const turn = Array.from({ length: 20 }, () => {
        const by = writers[chance(writers.length)]!;
        const path = `${root}/n${chance(12)}`;
        const kind = chance(4);
        if (kind === 0) return by.create(path, Buffer.from("0"));
        if (kind === 1) return by.delete(path);
        return by.set(path, Buffer.from(`${round}`));
      });
      await Promise.allSettled(turn);
      if (round % 20 === 10) proxy.cut();
    }
    const names = (await writer.children(root)).children;
    const truth: Record<string, string> = {};
    for (const name of [...names].sort()) {
      truth[name] = (await writer.get(`${root}/${name}`)).data.toString();
    }
    await cache.resync();
    expect(contents(cache)).toEqual(truth);

    const newest = new Map<string, bigint>();
    const present = new Set<string>();
    for (const change of changes) {
      if (change.type === "remove") {
        expect(present.delete(change.path)).toBe(true);
      } else if (change.type === "put") {
        const before = newest.get(change.path) ?? -1n;
        expect(change.stat!.mzxid > before || !present.has(change.path)).toBe(true);
        newest.set(change.path, change.stat!.mzxid);
        present.add(change.path);
      }
    }
    expect(new Set([...present].map((path) => path.slice(root.length + 1)))).toEqual(new Set(names));
    expect(changes.filter(({ type }) => type === "gap").length).toBeGreaterThan(0);
    expect(cache.pending()).toEqual({ events: 0, walk: 0 });
  });

  test("a walk that is cut off again and again gets through in the end, and removes nothing on its way", async () => {
    const count = 1_000;
    const made = Array.from({ length: count }, (_, i) => put(`n${i}`, `${i}`));
    await Promise.all(made);
    const client = await connect(proxy);
    const { cache, changes } = record(client, root, { concurrency: 16 });
    for (const bytes of [3_000, 17, 20_000, 9_001, 40_000]) {
      const cut = proxy.cutAfter("to-client", bytes);
      await Promise.race([cut, cache.synced]);
    }
    await cache.synced;
    expect(proxy.accepted).toBeGreaterThan(3);
    expect(cache.size).toBe(count);
    expect(changes.filter(({ type }) => type === "remove")).toEqual([]);
    expect(changes.filter(({ type }) => type === "put")).toHaveLength(count);
    for (let i = 0; i < count; i += 97) expect(contents(cache)[`n${i}`]).toBe(`${i}`);
  });

  test("closed, it tells nothing more and rejects who waits", async () => {
    const { cache, changes } = record(await connect(server), root);
    const waiting = cache.synced;
    await cache.close();
    await expect(waiting).rejects.toThrow(Closed);
    await expect(cache.resync()).rejects.toThrow(Closed);
    await put("a", "1");
    expect(changes).toEqual([]);
    const client = await connect(server);
    const other = record(client, root);
    await other.cache.synced;
    await closeAll();
    await expect(other.cache.resync()).rejects.toThrow(Closed);
    const late = record(client, root);
    await expect(late.cache.synced).rejects.toThrow(Closed);
  });
});
