import { beforeAll, describe, expect, test } from "vitest";
import { requireZooKeeper } from "../../../../testing/zookeeper/index.ts";
import {
  BadArguments,
  BadVersion,
  MultiFailed,
  NoChildrenForEphemerals,
  NodeExists,
  NoNode,
  NotEmpty,
  OPEN_ACL,
  wire,
  type ZooKeeper,
} from "../src/index.ts";
import { client, errorOf, freshPath, serverHere, until } from "./support.ts";

describe.skipIf(requireZooKeeper())("operations", () => {
  const server = serverHere({
    jvm: ["-Dzookeeper.extendedTypesEnabled=true", "-Dznode.container.checkIntervalMs=200"],
  });
  let zk: ZooKeeper;

  beforeAll(async () => {
    zk = await client(server);
  });

  test("create, get, set, exists and delete tell whole truths", async () => {
    const path = `${await freshPath(zk)}/a`;
    const made = await zk.create(path, Buffer.from("one"));
    expect(made.path).toBe(path);
    expect(made.stat).toMatchObject({ version: 0, dataLength: 3, ephemeralOwner: 0n, numChildren: 0 });
    expect(made.stat.czxid).toBe(made.stat.mzxid);
    const got = await zk.get(path);
    expect(got.data.toString()).toBe("one");
    expect(got.stat).toEqual(made.stat);
    const stat = await zk.set(path, Buffer.from("three"), { version: 0 });
    expect(stat).toMatchObject({ version: 1, dataLength: 5, czxid: made.stat.czxid });
    expect(stat.mzxid).toBeGreaterThan(made.stat.mzxid);
    expect(await zk.exists(path)).toEqual(stat);
    await zk.delete(path, { version: 1 });
    expect(await zk.exists(path)).toBeUndefined();
  });

  test("empty data stays empty", async () => {
    const path = `${await freshPath(zk)}/empty`;
    await zk.create(path);
    expect((await zk.get(path)).data).toEqual(Buffer.alloc(0));
  });

  test("sequential names count every child ever made, also below a trailing slash", async () => {
    const parent = await freshPath(zk);
    await zk.create(`${parent}/plain`);
    expect((await zk.create(`${parent}/`, undefined, { sequential: true })).path).toBe(
      `${parent}/0000000001`,
    );
    await zk.delete(`${parent}/plain`);
    expect((await zk.create(`${parent}/x-`, undefined, { sequential: true, ephemeral: true })).path).toBe(
      `${parent}/x-0000000002`,
    );
  });

  test("ephemeral znodes belong to the session and end with it", async () => {
    const parent = await freshPath(zk);
    const other = await client(server);
    const made = await other.create(`${parent}/e`, undefined, { ephemeral: true });
    expect(made.stat.ephemeralOwner).toBe(other.session.id);
    expect(await errorOf(zk.create(`${parent}/e/below`))).toBeInstanceOf(NoChildrenForEphemerals);
    await other.close();
    expect(await zk.exists(`${parent}/e`)).toBeUndefined();
  });

  test("containers and znodes with a TTL vanish by themselves", async () => {
    const parent = await freshPath(zk);
    await zk.create(`${parent}/c`, undefined, { container: true });
    await zk.create(`${parent}/c/child`);
    await zk.delete(`${parent}/c/child`);
    const { path } = await zk.create(`${parent}/ttl-`, undefined, { sequential: true, ttlMs: 50 });
    expect(path).toBe(`${parent}/ttl-0000000001`);
    await until("both gone", async () => (await zk.children(parent)).children.length === 0);
  });

  test.each([
    { container: true, ephemeral: true },
    { container: true, sequential: true },
    { ttlMs: 10, ephemeral: true },
    { ttlMs: 0 },
    { ttlMs: 1.5 },
  ])("a mixture that no server takes is refused: %j", async (options) => {
    expect(await errorOf(zk.create("/never", undefined, options))).toBeInstanceOf(BadArguments);
  });

  test("each refusal of the server has its class, its code, and no doubt about the outcome", async () => {
    const parent = await freshPath(zk);
    await zk.create(`${parent}/a`);
    const wrong = [
      [() => zk.get(`${parent}/none`), NoNode, "zookeeper.no_node"],
      [() => zk.create(`${parent}/a`), NodeExists, "zookeeper.node_exists"],
      [() => zk.set(`${parent}/a`, Buffer.alloc(0), { version: 7 }), BadVersion, "zookeeper.bad_version"],
      [() => zk.delete(parent), NotEmpty, "zookeeper.not_empty"],
      [() => zk.get("relative"), BadArguments, "zookeeper.bad_arguments"],
    ] as const;
    for (const [attempt, kind, code] of wrong) {
      const error = await errorOf(attempt());
      expect(error).toBeInstanceOf(kind);
      expect(error).toMatchObject({ code, outcome: "none" });
    }
    expect(await errorOf(zk.get(`${parent}/none`))).toMatchObject({
      op: "getData",
      path: `${parent}/none`,
      message: `getData ${parent}/none: the znode does not exist`,
    });
  });

  test("children come with the parent's Stat", async () => {
    const parent = await freshPath(zk);
    await Promise.all(["a", "b", "ü"].map((name) => zk.create(`${parent}/${name}`)));
    const { children, stat } = await zk.children(parent);
    expect([...children].sort()).toEqual(["a", "b", "ü"]);
    expect(stat).toMatchObject({ numChildren: 3, cversion: 3 });
  });

  test("access lists are read, written and obeyed", async () => {
    const path = await freshPath(zk);
    expect((await zk.getAcl(path)).acl).toEqual(OPEN_ACL);
    const readOnly = [{ perms: 1, scheme: "world", id: "anyone" }];
    expect(await zk.setAcl(path, readOnly, { version: 0 })).toMatchObject({ aversion: 1 });
    expect((await zk.getAcl(path)).acl).toEqual(readOnly);
    expect(await errorOf(zk.set(path, Buffer.alloc(1)))).toMatchObject({ code: "zookeeper.no_auth" });
    expect(await errorOf(zk.setAcl(path, [], { version: 1 }))).toMatchObject({ outcome: "none" });
  });

  test("sync and whoAmI answer", async () => {
    await zk.sync("/");
    expect(await zk.whoAmI()).toContainEqual({ authScheme: "ip", user: "127.0.0.1" });
  });

  test("a multi happens whole, in order, as one transaction", async () => {
    const parent = await freshPath(zk);
    const results = await zk.multi([
      { op: "check", path: parent, version: 0 },
      { op: "create", path: `${parent}/n-`, data: Buffer.from("x"), sequential: true, ephemeral: true },
      { op: "create", path: `${parent}/gone` },
      { op: "set", path: parent, data: Buffer.from("y"), version: 0 },
      { op: "delete", path: `${parent}/gone` },
    ]);
    const stat = (results[3] as { stat: { mzxid: bigint } }).stat;
    expect(results).toMatchObject([
      { op: "check" },
      { op: "create", path: `${parent}/n-0000000000`, czxid: stat.mzxid },
      { op: "create", path: `${parent}/gone`, czxid: stat.mzxid },
      { op: "set", stat: { version: 1 } },
      { op: "delete" },
    ]);
    expect((await zk.exists(`${parent}/n-0000000000`))?.czxid).toBe(stat.mzxid);
  });

  test("a multi that fails does nothing and names the culprit", async () => {
    const parent = await freshPath(zk);
    const error = await errorOf(
      zk.multi([
        { op: "create", path: `${parent}/a` },
        { op: "set", path: parent, data: Buffer.alloc(0), version: 9 },
        { op: "delete", path: `${parent}/none` },
      ]),
    );
    expect(error).toBeInstanceOf(MultiFailed);
    expect(error).toMatchObject({
      index: 1,
      outcome: "none",
      failure: { path: parent, code: "zookeeper.bad_version" },
    });
    expect((error as MultiFailed).cause).toBeInstanceOf(BadVersion);
    expect((await zk.children(parent)).children).toEqual([]);
  });

  test("an empty multi is no operation", async () => {
    expect(await zk.multi([])).toEqual([]);
  });

  test("multiRead answers each read for itself", async () => {
    const parent = await freshPath(zk);
    await zk.create(`${parent}/a`, Buffer.from("data"));
    const [data, children, missing] = await zk.multiRead([
      { op: "get", path: `${parent}/a` },
      { op: "children", path: parent },
      { op: "get", path: `${parent}/none` },
    ]);
    expect(data).toMatchObject({ op: "get", data: Buffer.from("data"), stat: { dataLength: 4 } });
    expect(children).toEqual({ op: "children", children: ["a"] });
    expect(missing).toMatchObject({ op: "error", error: { code: "zookeeper.no_node" } });
  });

  test("ensurePath and deleteRecursive work from any state", async () => {
    const parent = await freshPath(zk);
    await zk.ensurePath(`${parent}/a/b/c`);
    await zk.ensurePath(`${parent}/a/b/c`);
    await Promise.all([1, 2, 3].map((n) => zk.create(`${parent}/a/b/c/${n}`)));
    await zk.deleteRecursive(`${parent}/a`);
    await zk.deleteRecursive(`${parent}/a`);
    expect((await zk.children(parent)).children).toEqual([]);
  });

  test("a chroot is put before every path and taken off every answer", async () => {
    const parent = await freshPath(zk);
    const inside = await client(`${server.host}:${server.port}${parent}`);
    expect((await inside.create("/a", Buffer.from("1"))).path).toBe("/a");
    expect((await inside.create("/", undefined, { sequential: true })).path).toBe("/0000000001");
    expect(await inside.multi([{ op: "create", path: "/m" }])).toMatchObject([{ path: "/m" }]);
    expect(await errorOf(inside.get("/none"))).toMatchObject({ path: "/none" });
    const events: unknown[] = [];
    await inside.addWatch("/", "persistent-recursive", ({ type, path }) => events.push([type, path]));
    await zk.set(`${parent}/a`, Buffer.from("2"));
    await zk.set(parent, Buffer.from("2"));
    await until("two events", () => events.length === 2);
    expect(events).toEqual([
      ["data", "/a"],
      ["data", "/"],
    ]);
    expect((await inside.children("/")).children.length).toBe(3);
  });

  test("the raw door answers in the order of the calls, synchronously with the wire", async () => {
    const parent = await freshPath(zk);
    const seen: string[] = [];
    zk.submit(
      { type: wire.OpCode.create, path: `${parent}/a`, data: Buffer.alloc(0), acl: OPEN_ACL, flags: 0 },
      (error, response) => seen.push(`${error?.code} ${response?.path}`),
    );
    zk.submit({ type: wire.OpCode.getAllChildrenNumber, path: parent }, (error, response) =>
      seen.push(`${error?.code} ${response?.totalNumber}`),
    );
    zk.submit({ type: wire.OpCode.delete, path: `${parent}/b`, version: -1 }, (error) =>
      seen.push(`${error?.code}`),
    );
    await zk.drain();
    expect(seen).toEqual([`undefined ${parent}/a`, "undefined 1", "zookeeper.no_node"]);
  });

  test("hooks and counters see every packet and every operation of a multi", async () => {
    const sent: unknown[] = [];
    const answered: number[] = [];
    const counted = await client(server, {
      hooks: {
        packetSent: (opCode, _, subOperations) => sent.push([opCode, subOperations]),
        roundTrip: (opCode) => answered.push(opCode),
      },
    });
    await counted.exists("/");
    await counted.multi([
      { op: "check", path: "/" },
      { op: "check", path: "/" },
    ]);
    expect(sent).toEqual([
      [wire.OpCode.exists, 1],
      [wire.OpCode.multi, 2],
    ]);
    expect(answered).toEqual([wire.OpCode.exists, wire.OpCode.multi]);
    expect(counted.counters).toMatchObject({ packetsSent: 2, subOperations: 3, connections: 1 });
  });
});
