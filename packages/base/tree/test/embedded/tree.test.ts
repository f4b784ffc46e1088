import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Change } from "../../src/contract.ts";
import { type EmbeddedTree, openEmbeddedTree, restoreEmbeddedTree } from "../../src/embedded/index.ts";

let folder: string;
let tree: EmbeddedTree;

const open = () => openEmbeddedTree({ folder, clock: systemClock, random: systemRandom });
const bytes = (text: string) => new TextEncoder().encode(text);

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "nodeyard-embedded-"));
  tree = await open();
});

afterEach(async () => {
  await tree.close();
  rmSync(folder, { recursive: true, force: true });
});

test("what was written is there after a restart; what was ephemeral is not", async () => {
  await tree.create("/a", bytes("one"));
  await tree.set("/a", bytes("two"));
  await tree.create("/a/n-", bytes(""), { sequential: true });
  await tree.create("/a/e", bytes(""), { ephemeral: true });
  await tree.delete("/a/n-0000000000");
  const before = (await tree.get("/a")).stat;
  await tree.close();
  tree = await open();
  const { data, stat } = await tree.get("/a");
  expect(new TextDecoder().decode(data)).toBe("two");
  expect(await tree.children("/a")).toEqual([]);
  // The session's end deleted one more child, as an orderly close does.
  expect(stat).toMatchObject({ ...before, cversion: 4, numChildren: 0, pzxid: expect.anything() });
  const next = await tree.create("/a/n-", bytes(""), { sequential: true });
  expect(next.path).toBe("/a/n-0000000002");
  expect(next.stat.czxid).toBeGreaterThan(stat.pzxid);
});

test("256 writers share commits, and a lone write costs one", async () => {
  await tree.create("/w");
  const before = tree.core.batches;
  await tree.set("/w", bytes("x"));
  expect(tree.core.batches - before).toBe(1);
  const rounds = 20;
  const start = tree.core.batches;
  await Promise.all(
    Array.from({ length: 256 }, async (_, writer) => {
      for (let i = 0; i < rounds; i++) await tree.create(`/w/${writer}-${i}`, bytes("x".repeat(200)));
    }),
  );
  const commits = tree.core.batches - start;
  expect((await tree.children("/w")).length).toBe(256 * rounds);
  expect(commits).toBeLessThan(256);
});

test("a refused commit changes nothing, and says which operation refused", async () => {
  await tree.create("/a", bytes("x"));
  await tree.create("/a/e", bytes("x"), { ephemeral: true });
  const stats = [await tree.stat("/a"), await tree.stat("/a/e")];
  await expect(
    tree.commit([
      { op: "create", path: "/a/b" },
      { op: "create", path: "/a/b/c" },
      { op: "delete", path: "/a/e" },
      { op: "create", path: "/a/e", ephemeral: true },
      { op: "set", path: "/a", data: bytes("y") },
      { op: "check", path: "/a", version: 9 },
    ]),
  ).rejects.toMatchObject({ code: "tree.commit_failed", index: 5, reason: { code: "tree.bad_version" } });
  expect([await tree.stat("/a"), await tree.stat("/a/e")]).toEqual(stats);
  expect(await tree.children("/a")).toEqual(["e"]);
  expect(await tree.stat("/a/b/c")).toBeUndefined();
});

test("a feed reports own writes once, before the promise of the writer resolves", async () => {
  await tree.create("/f");
  await tree.create("/f/old", bytes("1"));
  const seen: Change[] = [];
  const feed = tree.feed("/f", {
    interest: (path) => (path.endsWith("lock") ? "name" : path.endsWith("no") ? "none" : "data"),
    onChange: (change) => seen.push(change),
  });
  await feed.synced;
  expect(seen.map((change) => [change.type, "path" in change ? change.path : ""])).toEqual([
    ["put", "/f"],
    ["put", "/f/old"],
    ["synced", ""],
  ]);
  seen.length = 0;
  const calls = tree.counters.calls;
  await tree.create("/f/lock");
  expect(seen).toEqual([{ type: "put", path: "/f/lock" }]);
  await tree.create("/f/no");
  await tree.create("/fx");
  const stat = await tree.set("/f/old", bytes("2"));
  expect(seen[1]).toMatchObject({ type: "put", path: "/f/old", stat });
  await tree.delete("/f/lock");
  expect(seen[2]).toEqual({ type: "remove", path: "/f/lock" });
  expect(seen.length).toBe(3);
  expect(tree.counters.calls - calls).toBe(5);
  await feed.close();
});

test("the changes of one commit to a path are one report, and none for what it made and deleted", async () => {
  const seen: Change[] = [];
  const feed = tree.feed("/", {
    interest: (path) => (path.endsWith("name") ? "name" : "data"),
    descend: (path) => !path.endsWith("closed"),
    onChange: (change) => seen.push(change),
  });
  await feed.synced;
  seen.length = 0;
  await tree.commit([
    { op: "create", path: "/x", data: bytes("1") },
    { op: "set", path: "/x", data: bytes("2") },
    { op: "create", path: "/gone" },
    { op: "delete", path: "/gone" },
    { op: "create", path: "/name" },
    { op: "set", path: "/name", data: bytes("2") },
  ]);
  expect(seen).toEqual([
    { type: "put", path: "/x", data: bytes("2"), stat: await tree.stat("/x") },
    { type: "put", path: "/name" },
  ]);
  seen.length = 0;
  await tree.commit([
    { op: "delete", path: "/x" },
    { op: "create", path: "/x", data: bytes("3") },
  ]);
  expect(seen).toEqual([{ type: "put", path: "/x", data: bytes("3"), stat: await tree.stat("/x") }]);
  await tree.create("/closed");
  await tree.create("/closed/in");
  seen.length = 0;
  await feed.resync();
  expect(seen).toEqual([{ type: "synced" }]);
  await feed.close();
});

test("a second session has ephemerals of its own, which go when it is closed", async () => {
  const other = await tree.connect();
  await tree.create("/mine", bytes(""), { ephemeral: true });
  await other.create("/its", bytes(""), { ephemeral: true });
  expect((await tree.stat("/its"))?.ephemeralOwner).toBe(other.session().id);
  await other.close();
  expect(await tree.stat("/its")).toBeUndefined();
  expect(await tree.stat("/mine")).toBeDefined();
  await expect(other.get("/mine")).rejects.toMatchObject({ code: "tree.closed" });
});

test("a restored tree gives out no sequence number that the lost one gave out after the backup", async () => {
  const number = async () =>
    Number((await tree.create("/n/", bytes(""), { sequential: true })).path.slice(3));
  await tree.create("/n");
  expect(await number()).toBe(0);
  const backup = join(folder, "backup.sqlite");
  await tree.backup(backup);
  expect(await number()).toBe(1);
  await tree.close();
  restoreEmbeddedTree({ folder, backup });
  tree = await open();
  const after = await number();
  expect(after).toBeGreaterThan(1_000_000);
  expect(after).toBeLessThan(2 ** 31);
  await tree.close();
  tree = await open();
  expect(await number()).toBe(after + 1);
});

test("a backup is restored whole, and zxids continue above all that the lost tree issued", async () => {
  await tree.create("/a", bytes("kept"));
  const backup = join(folder, "backup.sqlite");
  await tree.backup(backup);
  const lost = await tree.create("/b", bytes("lost"));
  expect(() => restoreEmbeddedTree({ folder, backup })).toThrowError(
    expect.objectContaining({ code: "tree.store_in_use" }),
  );
  await tree.close();
  restoreEmbeddedTree({ folder, backup });
  tree = await open();
  expect(await tree.children("/")).toEqual(["a"]);
  const next = await tree.create("/c");
  expect(next.stat.czxid).toBeGreaterThan(lost.stat.czxid);
  expect(next.stat.czxid >> 32n).toBeGreaterThan(lost.stat.czxid >> 32n);
  const once = next.stat.czxid;
  await tree.close();
  tree = await open();
  expect((await tree.create("/d")).stat.czxid >> 32n).toBe(once >> 32n);
});

test("a path that is none is refused by every call", async () => {
  const refusal = { code: "tree.bad_arguments" };
  await expect(tree.create("/none/")).rejects.toMatchObject(refusal);
  await expect(tree.get("none")).rejects.toMatchObject(refusal);
  await expect(tree.stat("//")).rejects.toMatchObject(refusal);
  await expect(tree.children("/.")).rejects.toMatchObject(refusal);
  await expect(tree.delete("/")).rejects.toMatchObject(refusal);
  await expect(
    tree.commit([
      { op: "create", path: "/fine" },
      { op: "check", path: "bad" },
    ]),
  ).rejects.toMatchObject({ code: "tree.commit_failed", index: 1, reason: refusal });
  expect(await tree.stat("/fine")).toBeUndefined();
});
