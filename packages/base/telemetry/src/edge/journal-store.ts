import { chmodSync, closeSync, openSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { JournalEvent, JournalLimits } from "../journal.ts";

/**
 * Layout 2 has the lease in a column of its own. Stored as `user_version`. A later release may add one; each release takes over the
 * layouts before its own.
 */
export const JOURNAL_LAYOUT = 2;

/** One event for the table. `at` is wall time, milliseconds; `facts` are JSON. */
export type JournalRow = Omit<JournalEvent, "facts" | "record"> & {
  readonly at: number;
  readonly lease?: string | undefined;
  readonly facts: string;
};

/** Rows that one look removes, at most: a look costs little whatever has piled up. */
const PRUNE_ROWS = 2_000;
/** Pages given back to the file system by one look, at most. */
const VACUUM_PAGES = 1_024;
/** The part of the size limit that events may use; the write-ahead log and half-empty pages need the rest. */
const FULL = 0.9;

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY, at INTEGER NOT NULL, event TEXT NOT NULL, request TEXT, node TEXT, facts TEXT NOT NULL, lease TEXT
  );
  CREATE INDEX IF NOT EXISTS events_by_request ON events (request) WHERE request IS NOT NULL;
  CREATE INDEX IF NOT EXISTS events_by_node ON events (node) WHERE node IS NOT NULL;
`;

/** The journal's file, for its writer. It removes the oldest events a few at a time, with each batch that comes. */
export class JournalStore {
  readonly #database: DatabaseSync;
  readonly #insert: StatementSync;
  readonly #tooOld: StatementSync;
  readonly #oldest: StatementSync;

  /** Throws when the file is no journal, or a journal of a later release. */
  constructor(file: string) {
    // SQLite gives its other files the mode of this one.
    closeSync(openSync(file, "a", 0o600));
    chmodSync(file, 0o600);
    const database = new DatabaseSync(file, { timeout: 5_000 });
    this.#database = database;
    const found = this.#pragma("user_version");
    if (found > JOURNAL_LAYOUT)
      throw new Error(
        `${file} was written by a later release (layout ${found}, this one knows ${JOURNAL_LAYOUT})`,
      );
    // auto_vacuum takes effect in a new file only; an old file keeps its size and reuses its free pages.
    // NORMAL with a write-ahead log: a crash of the program loses nothing that was committed, a power loss the last batches
    // (https://sqlite.org/pragma.html#pragma_synchronous).
    database.exec("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    // The log of a burst is cut to 16 MiB when it has been copied into the file.
    database.exec("PRAGMA journal_size_limit = 16777216");
    database.exec("BEGIN IMMEDIATE");
    // The release before: the lease is taken out of the facts of its events.
    if (found === 1)
      database.exec(`ALTER TABLE events ADD COLUMN lease TEXT;
        UPDATE events SET lease = json_extract(facts, '$.lease') WHERE event LIKE 'lease.%'`);
    database.exec(`${SCHEMA}
      CREATE INDEX IF NOT EXISTS events_by_lease ON events (lease) WHERE lease IS NOT NULL;
      CREATE INDEX IF NOT EXISTS events_by_job ON events (json_extract(facts, '$.job')) WHERE lease IS NOT NULL;
      PRAGMA user_version = ${JOURNAL_LAYOUT};
      COMMIT`);
    this.#insert = database.prepare(
      "INSERT INTO events (at, event, request, node, facts, lease) VALUES (?, ?, ?, ?, ?, ?)",
    );
    // By id, which is the order of writing: no index on time, and a clock that went back removes nothing too early.
    this.#tooOld = database.prepare(
      `DELETE FROM events WHERE id IN (SELECT id FROM events ORDER BY id LIMIT ${PRUNE_ROWS}) AND at < ?`,
    );
    this.#oldest = database.prepare(
      "DELETE FROM events WHERE id IN (SELECT id FROM events ORDER BY id LIMIT ?)",
    );
  }

  get database(): DatabaseSync {
    return this.#database;
  }

  /** The size of the file, without its write-ahead log. */
  get bytes(): number {
    return this.#pragma("page_count") * this.#pragma("page_size");
  }

  /** All rows or none. */
  write(rows: readonly JournalRow[]): void {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      for (const { at, event, request, node, facts, lease } of rows)
        this.#insert.run(at, event, request ?? null, node ?? null, facts, lease ?? null);
      this.#database.exec("COMMIT");
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
  }

  /** Deletes a part of the events beyond the limits, after `written` new rows; `now` is wall time, milliseconds. */
  prune({ maxAgeMs, maxBytes }: JournalLimits, now: number, written = 0): void {
    this.#tooOld.run(now - maxAgeMs);
    // Twice what is added, so that a journal that is over its limit comes below it while it is written.
    if (this.#used() > maxBytes * FULL) this.#oldest.run(Math.max(PRUNE_ROWS, 2 * written));
    if (this.bytes > maxBytes) this.#database.exec(`PRAGMA incremental_vacuum(${VACUUM_PAGES})`);
  }

  /** Copies the write-ahead log into the file, unless another process reads it. The last call. */
  close(): void {
    this.#database.close();
  }

  /** Bytes that events take. */
  #used(): number {
    return (this.#pragma("page_count") - this.#pragma("freelist_count")) * this.#pragma("page_size");
  }

  #pragma(name: string): number {
    return Object.values(this.#database.prepare(`PRAGMA ${name}`).get()!)[0] as number;
  }
}
