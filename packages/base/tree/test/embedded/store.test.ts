import { mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { prepareFolder, writePid } from "../../src/embedded/edge/state-folder.ts";
import { openWorkerStore } from "../../src/embedded/edge/worker-store.ts";
import type { Batch } from "../../src/embedded/store.ts";
import type { ZnodeRow } from "../../src/engine/index.ts";

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "nodeyard-store-"));
  file = prepareFolder(folder).file;
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const NOW = 1_790_000_000_000;
const open = () => openWorkerStore(folder, file, NOW);

function row(path: string, text: string): ZnodeRow {
  return {
    path,
    data: new TextEncoder().encode(text),
    czxid: 1n,
    mzxid: 2n,
    pzxid: 3n,
    ctime: NOW,
    mtime: NOW + 1,
    version: 4,
    cversion: 5,
    aversion: 6,
    ephemeralOwner: 0x7fff_ffff_ffff_fff1n,
    acl: null,
  };
}

function batch(zxid: bigint, puts: ZnodeRow[], deletes: string[] = []): Batch {
  return { zxid, puts, deletes, sessionPuts: [], sessionDeletes: [] };
}

test("what was committed is read back, each column as it was", async () => {
  const session = {
    id: 0x7f00_0000_0000_0001n,
    kind: "wire",
    timeoutMs: 9000,
    password: new Uint8Array([1, 2]),
  };
  const first = await open();
  await first.store.commit({
    ...batch(7n, [row("/a", "x"), row("/b", "y")]),
    sessionPuts: [session] as never,
  });
  await first.store.commit(batch(8n, [row("/a", "z")], ["/b"]));
  await first.store.close();
  const second = await open();
  expect(second.snapshot.zxid).toBe(8n);
  expect(second.snapshot.boot).toBe(first.snapshot.boot + 1);
  expect(second.snapshot.znodes).toEqual([row("/a", "z")]);
  expect(second.snapshot.sessions).toEqual([session]);
  await second.store.close();
});

test("null data and access lists are read back, and null is not empty", async () => {
  const rows = [
    { ...row("/null", ""), data: null },
    { ...row("/locked", ""), acl: '[[31,"digest","me:hash"]]' },
  ];
  const first = await open();
  await first.store.commit(batch(7n, [row("/null", "x"), ...rows]));
  await first.store.close();
  const second = await open();
  expect(second.snapshot.znodes).toEqual(expect.arrayContaining(rows));
  await second.store.close();
});

/** The first layout, as it was released. */
const LAYOUT_1 = `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE znode (
    path TEXT PRIMARY KEY, data BLOB NOT NULL,
    czxid INTEGER NOT NULL, mzxid INTEGER NOT NULL, pzxid INTEGER NOT NULL,
    ctime INTEGER NOT NULL, mtime INTEGER NOT NULL,
    version INTEGER NOT NULL, cversion INTEGER NOT NULL, aversion INTEGER NOT NULL,
    owner INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE session (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, timeout_ms INTEGER NOT NULL, password BLOB NOT NULL
  ) STRICT;
  INSERT INTO meta VALUES ('zxid', 41), ('boot', 3), ('file', 0), ('copied', 0);
  PRAGMA application_id = 0x4e645964; PRAGMA user_version = 1`;

test("a file of the first layout is brought to today's, each znode as it was", async () => {
  const db = new DatabaseSync(file);
  db.exec(LAYOUT_1);
  const { path, data, czxid, mzxid, pzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner } = row(
    "/a",
    "x",
  );
  db.prepare("INSERT INTO znode VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)").run(
    ...[path, data, czxid, mzxid, pzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner],
  );
  db.close();
  const { store, snapshot } = await open();
  expect(snapshot).toMatchObject({ zxid: 41n, boot: 4, znodes: [row("/a", "x")] });
  await store.commit(batch(42n, [{ ...row("/b", ""), data: null, acl: '[[1,"world","anyone"]]' }], ["/a"]));
  await store.close();
  const again = await open();
  expect(again.snapshot.znodes).toEqual([{ ...row("/b", ""), data: null, acl: '[[1,"world","anyone"]]' }]);
  await again.store.close();
});

test("the folder and the files in it are closed to others", async () => {
  const { store } = await open();
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  await store.close();
});

test("a second opening is refused and names the process that holds the tree", async () => {
  const { store } = await open();
  writePid(folder);
  await expect(open()).rejects.toMatchObject({
    code: "tree.store_in_use",
    message: `${folder} is in use by process ${process.pid}; stop it, or use its socket in that folder`,
  });
  await store.close();
  await (await open()).store.close();
});

test("a file of a later release is refused and left as it is", async () => {
  await (await open()).store.close();
  const db = new DatabaseSync(file);
  db.exec("PRAGMA user_version = 99");
  db.close();
  const before = readFileSync(file);
  await expect(open()).rejects.toMatchObject({
    code: "tree.store_newer",
    message: expect.stringMatching(/has layout 99, this release reads up to \d/),
  });
  expect(readFileSync(file).equals(before)).toBe(true);
});

test("another program's file is refused", async () => {
  const db = new DatabaseSync(file);
  db.exec("CREATE TABLE t (x)");
  db.close();
  await expect(open()).rejects.toMatchObject({ code: "tree.store_foreign" });
});

test("a damaged file is refused", async () => {
  const { store } = await open();
  const many = Array.from({ length: 500 }, (_, i) => row(`/n${i}`, "x".repeat(200)));
  await store.commit(batch(1n, many));
  await store.close();
  const bytes = readFileSync(file);
  for (let at = 8192; at + 64 < bytes.length; at += 4096) bytes.fill(0xa5, at, at + 64);
  writeFileSync(file, bytes);
  await expect(open()).rejects.toMatchObject({ code: "tree.store_damaged" });
});

test("text that is no database at all is refused", async () => {
  writeFileSync(file, "not a database, but long enough to look at".repeat(200));
  await expect(open()).rejects.toMatchObject({ code: "tree.store_damaged" });
});

test("no backup fails, nor holds commits up until it ends, while there are always writes", async () => {
  const { store } = await open();
  const large = Array.from({ length: 3000 }, (_, i) => row(`/w${i}`, "w".repeat(1000)));
  await store.commit(batch(1n, large));
  let zxid = 2n;
  for (let i = 0; i < 20; i++) {
    const ends: string[] = [];
    const copied = store.backup(join(folder, `copy${i}.sqlite`)).then(() => ends.push("copy"));
    while (!ends.includes("copy")) {
      const commits = Array.from({ length: 4 }, () => store.commit(batch(zxid++, [row("/x", "w")])));
      await Promise.all(commits);
      ends.push("commits");
    }
    await copied;
    expect(ends[0]).toBe("commits");
  }
  await store.close();
});

test("a backup made under writes is whole, and opening it jumps the epoch", async () => {
  const { store } = await open();
  await store.commit(batch(41n, [row("/a", "x")]));
  const target = join(folder, "copy.sqlite");
  const writes: Promise<void>[] = [];
  const copied = store.backup(target);
  for (let i = 0; i < 50; i++) writes.push(store.commit(batch(42n + BigInt(i), [row(`/w${i}`, "w")])));
  await copied;
  await Promise.all(writes);
  await store.close();

  const original = await open();
  expect(original.snapshot.zxid).toBe(91n);
  await original.store.close();

  const copy = await openWorkerStore(folder, target, NOW);
  expect(copy.snapshot.zxid >> 32n).toBeGreaterThan(91n >> 32n);
  expect(copy.snapshot.znodes.map((znode) => znode.path)).toContain("/a");
  await copy.store.close();
  const again = await openWorkerStore(folder, target, NOW);
  expect(again.snapshot.zxid).toBe(copy.snapshot.zxid);
  await again.store.close();
});

test("an old copy that was put over the file by hand jumps the epoch, whatever its inode", async () => {
  const { store, snapshot } = await open();
  await store.commit(batch(5n, [row("/a", "old")]));
  await store.close();
  const old = readFileSync(file);
  const later = await open();
  await later.store.commit(batch(90n, [row("/a", "new")]));
  await later.store.close();
  writeFileSync(file, old);
  const back = await open();
  expect(new TextDecoder().decode(back.snapshot.znodes[0]?.data)).toBe("old");
  expect(back.snapshot.zxid).toBeGreaterThan(1n << 32n);
  expect(back.snapshot.boot, "session ids are not given out again").toBe(snapshot.boot + 2);
  await back.store.close();
  const again = await open();
  expect(again.snapshot.zxid).toBe(back.snapshot.zxid);
  await again.store.close();
});

test.each(["deleted", "replaced"])("nothing is acknowledged once the file was %s under us", async (how) => {
  const { store } = await open();
  await store.commit(batch(1n, [row("/a", "x")]));
  if (how === "replaced") {
    const copy = readFileSync(file);
    writeFileSync(`${file}.new`, copy);
    renameSync(`${file}.new`, file);
  } else rmSync(file);
  await expect(store.commit(batch(2n, [row("/a", "y")]))).rejects.toMatchObject({
    code: "tree.store_failed",
    outcome: "unknown",
    cause: expect.objectContaining({
      message: expect.stringContaining(`was ${how} under the running process`),
    }),
  });
  await store.close();
});
