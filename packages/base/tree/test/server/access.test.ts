import { join } from "node:path";
import { connect, UnixConnector, type ZooKeeper, type ZooKeeperOptions } from "@nodeyard/zookeeper";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Bench, startBench } from "./bench.ts";

/** What our server adds to ZooKeeper's rules: who is trusted, what outlasts a restart, what is bounded. */
let bench: Bench;
const clients: ZooKeeper[] = [];

beforeEach(async () => {
  bench = await startBench();
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((one) => one.close()));
  await bench.close();
});

async function client(options: ZooKeeperOptions = {}): Promise<ZooKeeper> {
  const made = await connect(bench.hosts, { reconnectBaseMs: 20, ...options });
  clients.push(made);
  return made;
}

const ME = { scheme: "digest", auth: "me:secret" };
const MINE = [{ perms: 31, scheme: "auth", id: "" }];
const text = (value: string) => new TextEncoder().encode(value);

test("our own client opens with its password what it locked, also after a restart of the server", async () => {
  const owner = await client({ auth: [ME] });
  const other = await client();
  await owner.create("/mine", text("1"), { acl: MINE });
  await owner.create("/shown");
  await owner.setAcl("/shown", [{ perms: 1, scheme: "world", id: "anyone" }, ...MINE], { version: 0 });
  const { acl } = await owner.getAcl("/mine");
  await bench.restart();
  expect((await owner.get("/mine")).data.toString()).toBe("1");
  expect((await owner.getAcl("/mine")).acl).toEqual(acl);
  expect((await owner.getAcl("/shown")).stat.aversion).toBe(1);
  await expect(other.get("/mine")).rejects.toMatchObject({ code: "zookeeper.no_auth" });
  await other.get("/shown");
  await expect(other.set("/shown", text("2"))).rejects.toMatchObject({ code: "zookeeper.no_auth" });
});

test("the roles of the process and clients of the Unix socket are bound by no access list", async () => {
  const owner = await client({ auth: [ME] });
  await owner.create("/mine", text("1"), { acl: MINE });
  expect(Buffer.from((await bench.tree.get("/mine")).data).toString()).toBe("1");
  await bench.tree.create("/mine/by-a-role", text("2"));
  const operator = await client({ connector: new UnixConnector(join(bench.folder, "tree.sock")) });
  expect((await operator.get("/mine")).data.toString()).toBe("1");
  await operator.setAcl("/mine", [{ perms: 31, scheme: "world", id: "anyone" }]);
  expect((await (await client()).get("/mine")).data.toString()).toBe("1");
});

test("null data is empty to the roles of the process", async () => {
  const zk = await client();
  const created = Promise.withResolvers<void>();
  const acl = [{ perms: 31, scheme: "world", id: "anyone" }];
  zk.submit({ type: 1, path: "/null", data: null, acl, flags: 0 }, (error) =>
    error === undefined ? created.resolve() : created.reject(error),
  );
  await created.promise;
  expect((await bench.tree.get("/null")).data.length).toBe(0);
  const changes: unknown[] = [];
  const feed = bench.tree.feed("/null", {
    interest: () => "data",
    onChange: (change) => changes.push(change),
  });
  await feed.synced;
  expect(changes).toMatchObject([{ type: "put", data: new Uint8Array(0) }, { type: "synced" }]);
  await feed.close();
});

test("the server shows a client its identity", async () => {
  const zk = await client({ auth: [ME] });
  expect(await zk.whoAmI()).toEqual([
    { authScheme: "ip", user: "127.0.0.1" },
    { authScheme: "digest", user: "me" },
  ]);
});

test("credentials and access lists that are too long are refused", async () => {
  const zk = await client({ auth: [ME] });
  const entries = (count: number) =>
    Array.from({ length: count }, (_, perms) => ({ perms, scheme: "auth", id: "" }));
  await zk.create("/many", undefined, { acl: entries(100) });
  await expect(zk.create("/more", undefined, { acl: entries(101) })).rejects.toMatchObject({
    code: "zookeeper.invalid_acl",
  });
  await zk.addAuth({ scheme: "digest", auth: `user:${"x".repeat(251)}` });
  await expect(zk.addAuth({ scheme: "digest", auth: `user:${"x".repeat(252)}` })).rejects.toMatchObject({
    code: "zookeeper.auth_failed",
  });
});

test("a connection may prove to be sixteen, and no more", async () => {
  const zk = await client();
  for (let number = 0; number < 16; number++) await zk.addAuth({ scheme: "digest", auth: `user${number}:x` });
  await zk.addAuth({ scheme: "digest", auth: "user7:x" });
  await expect(zk.addAuth({ scheme: "digest", auth: "user16:x" })).rejects.toMatchObject({
    code: "zookeeper.auth_failed",
  });
});
