import { beforeAll, describe, expect, test } from "vitest";
import { kazoo, requireZooKeeper, startProxy } from "../../../../testing/zookeeper/index.ts";
import { BadArguments, type WatchEvent, type ZooKeeper } from "../src/index.ts";
import { client, errorOf, freshPath, serverHere, states, until } from "./support.ts";

describe.skipIf(requireZooKeeper())("watches", () => {
  const server = serverHere();
  let zk: ZooKeeper;
  let other: ZooKeeper;

  beforeAll(async () => {
    zk = await client(server);
    other = await client(server);
  });

  function record(): { readonly seen: string[]; readonly listener: (event: WatchEvent) => void } {
    const seen: string[] = [];
    return { seen, listener: ({ type, path }) => seen.push(`${type} ${path}`) };
  }

  test("one-shot watches fire once: data, existence, children", async () => {
    const path = await freshPath(zk);
    const { seen, listener } = record();
    await zk.get(path, { watch: listener });
    await zk.children(path, { watch: listener });
    await zk.exists(`${path}/new`, { watch: listener });
    await other.set(path, Buffer.from("1"));
    await other.set(path, Buffer.from("2"));
    await other.create(`${path}/new`);
    await other.create(`${path}/newer`);
    await zk.sync("/");
    expect(seen).toEqual([`data ${path}`, `created ${path}/new`, `children ${path}`]);
  });

  test("deletion fires data and child watches of the znode, each once", async () => {
    const path = await freshPath(zk);
    const { seen, listener } = record();
    await zk.get(path, { watch: listener });
    await zk.children(path, { watch: (event) => listener(event) });
    await other.delete(path);
    await zk.sync("/");
    expect(seen).toEqual([`deleted ${path}`, `deleted ${path}`]);
  });

  test("a read that fails leaves no watch", async () => {
    const path = await freshPath(zk);
    const { seen, listener } = record();
    await errorOf(zk.get(`${path}/none`, { watch: listener }));
    await other.create(`${path}/none`);
    await zk.sync("/");
    expect(seen).toEqual([]);
  });

  test("a persistent watch sees the znode and its children, again and again", async () => {
    const path = await freshPath(zk);
    const { seen, listener } = record();
    const watch = await zk.addWatch(path, "persistent", listener);
    await other.set(path, Buffer.from("1"));
    await other.set(path, Buffer.from("2"));
    await other.create(`${path}/a`);
    await other.create(`${path}/a/b`);
    await zk.sync("/");
    await watch.remove();
    await other.set(path, Buffer.from("3"));
    await zk.sync("/");
    expect(seen).toEqual([`data ${path}`, `data ${path}`, `children ${path}`]);
  });

  test("a recursive watch sees everything below, in order", async () => {
    const path = await freshPath(zk);
    const { seen, listener } = record();
    await using _ = await zk.addWatch(path, "persistent-recursive", listener);
    await other.create(`${path}/a`);
    await other.create(`${path}/a/b`);
    await other.set(`${path}/a/b`, Buffer.from("1"));
    await other.multi([
      { op: "delete", path: `${path}/a/b` },
      { op: "delete", path: `${path}/a` },
    ]);
    await zk.sync("/");
    expect(seen).toEqual([
      `created ${path}/a`,
      `created ${path}/a/b`,
      `data ${path}/a/b`,
      `deleted ${path}/a/b`,
      `deleted ${path}/a`,
    ]);
  });

  test("a one-shot watch does not cost a persistent one on the same path its life", async () => {
    const path = await freshPath(zk);
    const lasting = record();
    const once = record();
    await using _ = await zk.addWatch(path, "persistent-recursive", lasting.listener);
    await zk.get(path, { watch: once.listener });
    await zk.children(path, { watch: once.listener });
    await other.set(path, Buffer.from("1"));
    await other.create(`${path}/a`);
    await other.set(path, Buffer.from("2"));
    await zk.sync("/");
    expect(lasting.seen).toEqual([`data ${path}`, `created ${path}/a`, `data ${path}`]);
    expect(once.seen).toEqual([`data ${path}`, `children ${path}`]);
  });

  test("two modes on one path are refused, two listeners are not", async () => {
    const path = await freshPath(zk);
    const [a, b] = [record(), record()];
    const first = await zk.addWatch(path, "persistent", a.listener);
    await zk.addWatch(path, "persistent", b.listener);
    expect(await errorOf(zk.addWatch(path, "persistent-recursive", a.listener))).toBeInstanceOf(BadArguments);
    await first.remove();
    await other.set(path, Buffer.from("1"));
    await zk.sync("/");
    expect([a.seen, b.seen]).toEqual([[], [`data ${path}`]]);
    await zk.removeWatches(path);
    await other.set(path, Buffer.from("2"));
    await zk.sync("/");
    expect(b.seen.length).toBe(1);
    expect((await server.mntr()).zk_watch_count).toBe("0");
  });

  test("an event reaches its listener before a later reply reaches its caller", async () => {
    const path = await freshPath(zk);
    const seen: string[] = [];
    await using _ = await zk.addWatch(path, "persistent", (event) => seen.push(event.type));
    const unlisten = zk.onWatchEvent((event) => seen.push(`all ${event.type}`));
    for (let i = 0; i < 200; i++) {
      seen.push("-");
      await zk.set(path, Buffer.from(String(i)));
      expect(seen.splice(0)).toEqual(["-", "all data", "data"]);
    }
    unlisten();
  });

  test("all kinds survive a reconnect, and what changed meanwhile fires one-shots", async () => {
    const proxy = await startProxy(server);
    const shaky = await client(proxy);
    const path = await freshPath(zk);
    for (const name of ["d", "d2", "c", "p", "r"]) await zk.create(`${path}/${name}`);
    const { seen, listener } = record();
    await shaky.get(`${path}/d`, { watch: listener });
    await shaky.get(`${path}/d2`, { watch: listener });
    await shaky.exists(`${path}/new`, { watch: listener });
    await shaky.children(`${path}/c`, { watch: listener });
    await shaky.addWatch(`${path}/p`, "persistent", listener);
    await shaky.addWatch(`${path}/r`, "persistent-recursive", listener);
    const changes = states(shaky);
    proxy.refuse(true);
    proxy.cut();
    await until("suspended", () => shaky.session.state === "suspended");
    await other.set(`${path}/d`, Buffer.from("1"));
    await other.create(`${path}/new`);
    await other.create(`${path}/c/x`);
    await other.set(`${path}/p`, Buffer.from("missed"));
    proxy.refuse(false);
    await until("connected", () => shaky.session.state === "connected");
    await until("three events", () => seen.length >= 3);
    expect(seen.splice(0).sort()).toEqual([`children ${path}/c`, `created ${path}/new`, `data ${path}/d`]);
    expect(changes.at(-1)).toMatchObject({ state: "connected", reattached: true, epoch: 1 });
    await other.set(`${path}/p`, Buffer.from("seen"));
    await other.create(`${path}/r/y`);
    await other.set(`${path}/d2`, Buffer.from("1"));
    await shaky.sync("/");
    expect(seen).toEqual([`data ${path}/p`, `created ${path}/r/y`, `data ${path}/d2`]);
    await shaky.close();
    await proxy.close();
  });

  test("thousands of watches come back after a reconnect, in requests that a server takes", async () => {
    const proxy = await startProxy(server);
    const shaky = await client(proxy);
    const path = await freshPath(zk);
    const name = (i: number) => `${path}/${"long-name-".repeat(10)}${i}`;
    const { seen, listener } = record();
    const count = 3_000;
    await Promise.all(Array.from({ length: count }, (_, i) => shaky.exists(name(i), { watch: listener })));
    proxy.cut();
    await until("reconnected", () => shaky.counters.connections === 2);
    await Promise.all(Array.from({ length: count }, (_, i) => other.create(name(i))));
    await shaky.sync("/");
    expect(seen.length).toBe(count);
    await shaky.close();
    await proxy.close();
  });

  test("kazoo's changes are seen here, and ours by kazoo's watches", async () => {
    const path = await freshPath(zk);
    const { seen, listener } = record();
    await using _ = await zk.addWatch(path, "persistent-recursive", listener);
    const script = `
zk = client(args[0]); path = args[1]
zk.create(path + "/k-", b"1", sequence=True)
print(zk.create(path + "/", b"1", sequence=True, ephemeral=True))
zk.set(path + "/k-0000000000", b"2")
zk.stop()
`;
    const made = await kazoo(script, [`127.0.0.1:${server.port}`, path]);
    expect(made.trim()).toBe(`${path}/0000000001`);
    await zk.sync("/");
    expect(seen).toEqual([
      `created ${path}/k-0000000000`,
      `created ${path}/0000000001`,
      `data ${path}/k-0000000000`,
      `deleted ${path}/0000000001`,
    ]);
    expect((await zk.create(`${path}/x`, undefined, { sequential: true })).path).toBe(`${path}/x0000000002`);
  });
});
