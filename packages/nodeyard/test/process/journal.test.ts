import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { systemClock } from "@nodeyard/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { memoryLog, openJournal } from "../../src/telemetry/index.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "nodeyard-journal-"));
  file = join(folder, "journal.sqlite");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const handles = () => ({ clock: systemClock, log: memoryLog() });

function rows(): Record<string, unknown>[] {
  const database = new DatabaseSync(file, { readOnly: true });
  const all = database.prepare("SELECT event, request, node, facts FROM events ORDER BY id").all();
  database.close();
  return all.map((row) => ({ ...row }));
}

test("what was written before the end is there, in order, and the next process goes on", async () => {
  for (const round of [1, 2]) {
    const journal = openJournal({ file }, handles());
    journal.write({ event: "request.accepted", request: `100-000000000${round}`, facts: { pool: "main" } });
    journal.write({ event: "node.deleted", node: "0000000001", facts: {} });
    await journal.close();
    expect(journal.lost).toBe(0);
  }
  expect(rows()).toEqual([
    { event: "request.accepted", request: "100-0000000001", node: null, facts: '{"pool":"main"}' },
    { event: "node.deleted", request: null, node: "0000000001", facts: "{}" },
    { event: "request.accepted", request: "100-0000000002", node: null, facts: '{"pool":"main"}' },
    { event: "node.deleted", request: null, node: "0000000001", facts: "{}" },
  ]);
});

test("only its owner can read it", async () => {
  const journal = openJournal({ file }, handles());
  journal.write({ event: "node.deleted", node: "0000000001", facts: {} });
  await journal.close();
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("only the youngest are kept", async () => {
  const journal = openJournal({ file, keep: 10 }, handles());
  for (let at = 0; at < 100; at++) journal.write({ event: "node.deleted", node: String(at), facts: {} });
  await journal.close();
  expect(rows().map(({ node }) => node)).toEqual(Array.from({ length: 10 }, (_, at) => String(at + 90)));
});

test("more than the disk can take is counted and left out", async () => {
  const journal = openJournal({ file }, handles());
  for (let at = 0; at < 60_000; at++) journal.write({ event: "node.deleted", facts: {} });
  expect(journal.lost).toBe(10_000);
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
  const { clock, log } = handles();
  const journal = openJournal({ file }, { clock, log });
  journal.write({ event: "node.deleted", facts: {} });
  await journal.close();
  journal.write({ event: "node.deleted", facts: {} });
  expect(journal.lost).toBe(2);
  expect(log.lines).toMatchObject([{ level: "error", facts: { file } }]);
});
