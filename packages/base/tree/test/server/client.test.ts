import { statSync } from "node:fs";
import { join } from "node:path";
import {
  type Connector,
  connect,
  UnixConnector,
  type WatchEvent,
  wire,
  type ZooKeeper,
} from "@nodeyard/zookeeper";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Bench, startBench } from "./bench.ts";

/** Our own client on the Unix socket: what kazoo's stock release cannot ask for, and sessions over a restart. */
let bench: Bench;
const clients: ZooKeeper[] = [];

async function client(sessionTimeoutMs = 5_000): Promise<ZooKeeper> {
  const made = await connect("localhost", {
    connector: new UnixConnector(join(bench.folder, "tree.sock")),
    sessionTimeoutMs,
    reconnectBaseMs: 20,
  });
  clients.push(made);
  return made;
}

beforeEach(async () => {
  bench = await startBench({ limits: { minSessionTimeoutMs: 300 } });
});

afterEach(async () => {
  await Promise.all(clients.splice(0).map((one) => one.close()));
  await bench.close();
});

const text = (value: string) => new TextEncoder().encode(value);
const brief = (events: readonly WatchEvent[]) => events.map((event) => `${event.type} ${event.path}`);

test("the socket is closed to other users", () => {
  expect(statSync(join(bench.folder, "tree.sock")).mode & 0o777).toBe(0o600);
});

test("a recursive watch tells everything beneath in order, before the writer's own reply", async () => {
  const zk = await client();
  const events: WatchEvent[] = [];
  await zk.addWatch("/r", "persistent-recursive", (event) => events.push(event));
  await zk.create("/r");
  await zk.create("/r/a", text("1"));
  await zk.create("/rx");
  await zk.multi([
    { op: "create", path: "/r/a/b" },
    { op: "set", path: "/r/a", data: text("2") },
    { op: "delete", path: "/r/a/b" },
  ]);
  expect(brief(events)).toEqual([
    "created /r",
    "created /r/a",
    "created /r/a/b",
    "data /r/a",
    "deleted /r/a/b",
  ]);
});

test("a persistent watch stays, reports children too, and ends when removed", async () => {
  const zk = await client();
  await zk.create("/p");
  const events: WatchEvent[] = [];
  const watch = await zk.addWatch("/p", "persistent", (event) => events.push(event));
  await zk.set("/p", text("1"));
  await zk.set("/p", text("2"));
  await zk.create("/p/c");
  expect(brief(events)).toEqual(["data /p", "data /p", "children /p"]);
  await watch.remove();
  await zk.set("/p", text("3"));
  await zk.sync("/p");
  expect(events.length).toBe(3);
  const again = Promise.withResolvers<string | undefined>();
  zk.submit({ type: wire.OpCode.removeWatches, path: "/p", watcherType: 3 }, (error) =>
    again.resolve(error?.code),
  );
  expect(await again.promise).toMatch(/watch/);
});

test("a one-shot and a recursive watch on one path give one event for one change", async () => {
  const zk = await client();
  const other = await client();
  await zk.create("/o");
  const raw: string[] = [];
  zk.onWatchEvent((event) => raw.push(`${event.type} ${event.path}`));
  await zk.addWatch("/", "persistent-recursive", () => undefined);
  await zk.get("/o", { watch: () => undefined });
  await other.set("/o", text("1"));
  await zk.sync("/");
  expect(raw).toEqual(["data /o"]);
});

test("sessions, ephemerals and watches live on over a restart of the server", async () => {
  const zk = await client();
  const id = zk.session.id;
  const events: WatchEvent[] = [];
  await zk.addWatch("/s", "persistent-recursive", (event) => events.push(event));
  await zk.create("/s", undefined, { ephemeral: true });
  await zk.create("/missed");
  const note = (event: WatchEvent) => events.push(event);
  await zk.get("/missed", { watch: note });
  await zk.create("/parent");
  await zk.children("/parent", { watch: note });
  await zk.create("/quiet");
  await zk.get("/quiet", { watch: note });
  await zk.create("/doomed");
  await zk.get("/doomed", { watch: note });
  await zk.exists("/later", { watch: note });
  events.length = 0;
  await bench.restart();
  await bench.tree.set("/missed", text("while away"));
  await bench.tree.create("/parent/child");
  await bench.tree.delete("/doomed");
  await bench.tree.create("/later");
  expect((await zk.exists("/s"))?.ephemeralOwner).toBe(id);
  expect(zk.session.id).toBe(id);
  await zk.set("/s", text("x"));
  expect(brief(events).sort()).toEqual([
    "children /parent",
    "created /later",
    "data /missed",
    "data /s",
    "deleted /doomed",
  ]);
  events.length = 0;
  await zk.set("/quiet", text("x"));
  await zk.set("/missed", text("x"));
  expect(brief(events)).toEqual(["data /quiet"]);
});

test("a session that no client resumes after a restart ends when its timeout has passed since then", async () => {
  let dead = false;
  const alive = new UnixConnector(join(bench.folder, "tree.sock"));
  const killable: Connector = {
    resolve: () => alive.resolve(),
    defer: (fn) => alive.defer(fn),
    open: (endpoint, handlers) => {
      if (!dead) return alive.open(endpoint, handlers);
      setImmediate(() => handlers.closed());
      return { write: () => true, destroy: () => undefined };
    },
  };
  const zk = await connect("localhost", { connector: killable, sessionTimeoutMs: 1_500 });
  clients.push(zk);
  await zk.create("/gone", undefined, { ephemeral: true });
  dead = true;
  await bench.restart();
  expect(bench.tree.core.sessionCount("wire")).toBe(1);
  const gone = Promise.withResolvers<void>();
  const feed = bench.tree.feed("/gone", {
    interest: () => "name",
    onChange: (change) => change.type === "remove" && gone.resolve(),
  });
  await feed.synced;
  await gone.promise;
  expect(bench.tree.core.sessionCount("wire")).toBe(0);
});

test("an unknown session is answered as expired, and a new one is opened", async () => {
  const zk = await client();
  await zk.create("/e", undefined, { ephemeral: true });
  const expired = Promise.withResolvers<void>();
  zk.onStatus((status) => status.state === "expired" && expired.resolve());
  bench.tree.core.closeSession(zk.session.id);
  await expired.promise;
  expect(await zk.exists("/e")).toBeUndefined();
  expect(zk.session.epoch).toBe(2);
});

test("containers and TTL znodes are refused as unimplemented; multiRead and whoAmI answer", async () => {
  const zk = await client();
  await expect(zk.create("/c", undefined, { container: true })).rejects.toMatchObject({
    code: expect.stringMatching(/unimplemented/),
  });
  await expect(zk.create("/t", undefined, { ttlMs: 1000 })).rejects.toMatchObject({
    code: expect.stringMatching(/unimplemented/),
  });
  await zk.create("/m", text("x"));
  const results = await zk.multiRead([
    { op: "get", path: "/m" },
    { op: "children", path: "/" },
    { op: "get", path: "/none" },
  ]);
  expect(results.map((result) => result.op)).toEqual(["get", "children", "error"]);
  expect((await zk.whoAmI()).length).toBe(1);
});

test("replies and reads never show what is not durable, and arrive in the order asked", async () => {
  const zk = await client();
  await zk.create("/n");
  const order: number[] = [];
  await Promise.all(
    Array.from({ length: 500 }, async (_, i) => {
      if (i % 2 === 0) await zk.set("/n", text(String(i)));
      else expect(new TextDecoder().decode((await zk.get("/n")).data)).toBe(String(i - 1));
      order.push(i);
    }),
  );
  expect(order).toEqual([...order].sort((a, b) => a - b));
});
