import { chmodSync, closeSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import type { JournalBatch, JournalPlace } from "./journal-file.ts";

/** The thread that writes the journal: the program's own thread never waits for its disk. */
const { file, keep } = workerData as JournalPlace;
const VERSION = 1;

// SQLite gives its other files the mode of this one.
closeSync(openSync(file, "a", 0o600));
chmodSync(file, 0o600);
const database = new DatabaseSync(file, { timeout: 5_000 });
const { user_version: found } = database.prepare("PRAGMA user_version").get() as { user_version: number };
if (found > VERSION)
  throw new Error(`${file} was written by a later release (layout ${found}, this one knows ${VERSION})`);
database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
database.exec(`
  CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY, at INTEGER NOT NULL, event TEXT NOT NULL, request TEXT, node TEXT, facts TEXT NOT NULL
  );
  CREATE INDEX IF NOT EXISTS events_by_request ON events (request) WHERE request IS NOT NULL;
  CREATE INDEX IF NOT EXISTS events_by_node ON events (node) WHERE node IS NOT NULL;
  PRAGMA user_version = ${VERSION};
`);
const insert = database.prepare(
  "INSERT INTO events (at, event, request, node, facts) VALUES (?, ?, ?, ?, ?)",
);
const prune = database.prepare("DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?");

parentPort!.on("message", (batch: JournalBatch) => {
  if (batch === "close") {
    database.close();
    parentPort!.close();
    return;
  }
  database.exec("BEGIN IMMEDIATE");
  for (const { at, event, request, node, facts } of batch)
    insert.run(at, event, request ?? null, node ?? null, facts);
  prune.run(keep);
  database.exec("COMMIT");
  parentPort!.postMessage(batch.length);
});
parentPort!.postMessage(0);
