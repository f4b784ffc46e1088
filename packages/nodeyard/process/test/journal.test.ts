import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { systemClock, VirtualClock } from "@nodeyard/runtime";
import { Counters, FileJournal, memoryLog, readJournal } from "@nodeyard/telemetry";
import { afterEach, beforeEach, expect, test } from "vitest";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "nodeyard-journal-"));
  file = join(folder, "journal.sqlite");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const handles = () => ({ clock: systemClock, log: memoryLog(), counters: new Counters() });
const events = (counters: Counters, result: "written" | "dropped") =>
  counters.value("journal.events", { result });

function rows(): Record<string, unknown>[] {
  const database = new DatabaseSync(file, { readOnly: true });
  const all = database.prepare("SELECT event, request, node, facts FROM events ORDER BY id").all();
  database.close();
  return all.map((row) => ({ ...row }));
}

test("what was written before the end is there, in order, and the next process goes on", async () => {
  for (const round of [1, 2]) {
    const { counters, ...rest } = handles();
    const journal = new FileJournal({ file }, { counters, ...rest });
    journal.write({ event: "request.accepted", request: `100-000000000${round}`, facts: { pool: "main" } });
    journal.write({ event: "node.deleted", node: "0000000001", facts: {} });
    await journal.close();
    expect([events(counters, "written"), events(counters, "dropped")]).toEqual([2, 0]);
    const level = (name: string) => counters.levels().find((one) => one.name === name)?.value;
    expect(level("journal.size")).toBe(statSync(file).size);
    expect(Math.abs(Date.now() / 1000 - level("journal.last_write")!)).toBeLessThan(3_600);
  }
  expect(rows()).toEqual([
    { event: "request.accepted", request: "100-0000000001", node: null, facts: '{"pool":"main"}' },
    { event: "node.deleted", request: null, node: "0000000001", facts: "{}" },
    { event: "request.accepted", request: "100-0000000002", node: null, facts: '{"pool":"main"}' },
    { event: "node.deleted", request: null, node: "0000000001", facts: "{}" },
  ]);
});

test("only its owner can read it", async () => {
  const journal = new FileJournal({ file }, handles());
  journal.write({ event: "node.deleted", node: "0000000001", facts: {} });
  await journal.close();
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("what is older than the limit goes, a few at a time, the oldest first", async () => {
  const clock = new VirtualClock();
  const journal = new FileJournal(
    { file, limits: { maxAgeMs: 60_000, maxBytes: 1e9 } },
    { ...handles(), clock },
  );
  for (let at = 0; at < 5_000; at++) journal.write({ event: "node.deleted", node: "old", facts: {} });
  await journal.read({});
  await clock.advance(61_000);
  for (const left of [3_001, 1_002, 3]) {
    journal.write({ event: "node.deleted", node: "new", facts: {} });
    await journal.read({});
    expect(rows()).toHaveLength(left);
  }
  await journal.close();
  expect(rows().every(({ node }) => node === "new")).toBe(true);
});

test("the file stays within its size while it is written, and keeps the youngest", async () => {
  const maxBytes = 4_000_000;
  const journal = new FileJournal({ file, limits: { maxAgeMs: 1e12, maxBytes } }, handles());
  const filler = "x".repeat(1_000);
  let most = 0;
  for (let batch = 0; batch < 60; batch++) {
    for (let at = 0; at < 500; at++)
      journal.write({ event: "node.deleted", node: String(batch), facts: { filler } });
    await journal.read({});
    most = Math.max(most, statSync(file).size);
  }
  expect(most).toBeLessThanOrEqual(maxBytes * 1.2);
  expect(most).toBeGreaterThan(maxBytes / 2);
  const kept = rows().map(({ node }) => Number(node));
  expect(kept.at(-1)).toBe(59);
  expect(kept.length).toBeGreaterThan(1_000);
  expect(kept).toEqual([...kept].sort((a, b) => a - b));
  expect(kept[0]).toBeGreaterThan(40);

  journal.limit({ maxAgeMs: 1e12, maxBytes: 1_000_000 });
  for (let batch = 0; batch < 20; batch++) {
    journal.write({ event: "node.deleted", node: "last", facts: {} });
    await journal.read({});
  }
  await journal.close();
  expect(statSync(file).size).toBeLessThanOrEqual(1_200_000);
});

test("what was written a moment ago can be asked for, by request, node or lease, without a scan", async () => {
  const journal = new FileJournal({ file }, handles());
  journal.write({ event: "request.accepted", request: "200-0000000001", facts: {} });
  journal.write({ event: "lease.granted", request: "200-0000000001", facts: { lease: "0123456789ab" } });
  journal.write({ event: "node.ready", node: "0000000001", facts: {} });
  const names = async (subject: object) => (await journal.read(subject)).events.map(({ event }) => event);
  expect(await names({ lease: "0123456789ab" })).toEqual(["lease.granted"]);
  expect(await names({ request: "200-0000000001", lease: "0123456789ab" })).toEqual([
    "request.accepted",
    "lease.granted",
  ]);
  expect(await names({ node: "0000000001" })).toEqual(["node.ready"]);
  expect(await names({})).toEqual([]);
  await journal.close();
  expect(await journal.read({})).toMatchObject({ events: [], problem: expect.stringContaining("closed") });
});

test("the latest of some kinds can be asked for, oldest first", async () => {
  const journal = new FileJournal({ file }, handles());
  for (const node of ["1", "2", "3"]) {
    journal.write({ event: "node.ready", node, facts: { ms: Number(node) } });
    journal.write({ event: "node.deleted", node, facts: {} });
  }
  const { events, problem } = await journal.latest(["node.ready", "request.fulfilled"]);
  expect(problem).toBeNull();
  expect(events.map(({ event, node, facts }) => [event, node, facts.ms])).toEqual([
    ["node.ready", "1", 1],
    ["node.ready", "2", 2],
    ["node.ready", "3", 3],
  ]);
  await journal.close();
});

test("a journal of the former layout is taken over with its leases", async () => {
  const database = new DatabaseSync(file);
  database.exec(`CREATE TABLE events (
      id INTEGER PRIMARY KEY, at INTEGER NOT NULL, event TEXT NOT NULL, request TEXT, node TEXT, facts TEXT NOT NULL);
    INSERT INTO events (at, event, facts) VALUES (1, 'lease.ended', '{"lease":"0123456789ab"}');
    PRAGMA user_version = 1`);
  database.close();
  expect(readJournal(file, {}).problem).toContain("earlier release");
  const journal = new FileJournal({ file, limits: { maxAgeMs: 1e15, maxBytes: 1e9 } }, handles());
  expect((await journal.read({ lease: "0123456789ab" })).events).toMatchObject([{ event: "lease.ended" }]);
  await journal.close();
  expect(readJournal(file, { lease: "0123456789ab" }).events).toHaveLength(1);
});

test("a disk that refuses costs the batch and one warning, and is used again when it works", async () => {
  const { clock, log, counters } = handles();
  const journal = new FileJournal({ file }, { clock, log, counters });
  await journal.read({});
  const other = new DatabaseSync(file);
  other.exec("ALTER TABLE events RENAME TO hidden");
  for (let round = 1; round <= 2; round++) {
    journal.write({ event: "node.deleted", facts: {} });
    await journal.read({});
    expect(events(counters, "dropped")).toBe(round);
    expect(counters.value("journal.write_failures")).toBe(round);
  }
  other.exec("ALTER TABLE hidden RENAME TO events");
  other.close();
  journal.write({ event: "node.deleted", facts: {} });
  await journal.close();
  expect(rows()).toHaveLength(1);
  expect(log.lines.map(({ level }) => level)).toEqual(["error", "info"]);
});

test("more than the disk can take is counted and left out", async () => {
  const { counters, ...rest } = handles();
  const journal = new FileJournal({ file }, { counters, ...rest });
  for (let at = 0; at < 60_000; at++) journal.write({ event: "node.deleted", facts: {} });
  expect(events(counters, "dropped")).toBe(10_000);
  await journal.close();
  expect(rows()).toHaveLength(50_000);
});

test.each([
  [
    "damaged",
    () => writeFileSync(file, "this is no database, and long enough to be looked at as one".repeat(20)),
  ],
  [
    "of a later release",
    () => {
      const database = new DatabaseSync(file);
      database.exec("CREATE TABLE events (x); PRAGMA user_version = 99");
      database.close();
    },
  ],
])("a file that is %s stops nothing, and the log says so", async (_, spoil) => {
  spoil();
  const { clock, log, counters } = handles();
  const journal = new FileJournal({ file }, { clock, log, counters });
  journal.write({ event: "node.deleted", facts: {} });
  await journal.close();
  journal.write({ event: "node.deleted", facts: {} });
  expect(events(counters, "dropped")).toBe(2);
  expect(log.lines).toMatchObject([{ level: "error", facts: { file } }]);
});
