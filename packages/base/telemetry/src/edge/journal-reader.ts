import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { messageOf } from "@nodeyard/runtime";
import { type History, noHistory, type PastEvent, type Subject } from "../journal.ts";
import { JOURNAL_LAYOUT } from "./journal-store.ts";

/** The youngest so many: a request that waits for a week is still explained by them. */
const AT_MOST = 200;

/**
 * Reads a journal that another process may be writing. Never throws: a journal is worth less than the answer without it. Opens the
 * file for this one read, for commands while no launcher answers.
 */
export function readJournal(file: string, subject: Subject): History {
  let history = noHistory("");
  const problem = withJournal(file, (database) => {
    history = historyIn(database, subject);
  });
  return problem === null ? history : noHistory(problem);
}

/** Calls `take` with every event of these names since `at`, wall milliseconds, in the order of writing. Returns why it cannot; else null. */
export function readEvents(
  file: string,
  names: readonly string[],
  at: number,
  take: (event: PastEvent) => void,
): string | null {
  return withJournal(file, (database) => {
    const rows = database
      .prepare(
        `SELECT at, event, request, node, facts FROM events
         WHERE at >= ? AND event IN (${names.map(() => "?").join(", ")}) ORDER BY id`,
      )
      .iterate(at, ...names);
    for (const row of rows) take(pastEvent(row));
  });
}

/** Returns why the journal cannot be read; else null. */
function withJournal(file: string, read: (database: DatabaseSync) => void): string | null {
  if (!existsSync(file)) return `there is no journal ${file}`;
  try {
    // Waits up to two seconds for a writer that has the file locked.
    using database = new DatabaseSync(file, { readOnly: true, timeout: 2_000 });
    // The layout is checked before anything is read: columns of another one mean something else.
    const { user_version: found } = database.prepare("PRAGMA user_version").get() as { user_version: number };
    if (found > JOURNAL_LAYOUT) return `${file} was written by a later release (layout ${found})`;
    if (found < JOURNAL_LAYOUT)
      return `${file} is of an earlier release (layout ${found}): the next launcher start takes it over`;
    read(database);
    return null;
  } catch (error) {
    return `the journal ${file} cannot be read: ${messageOf(error)}`;
  }
}

/** What an open journal has of a thing. Never throws. */
export function historyIn(database: DatabaseSync, { request, node, lease, job }: Subject): History {
  try {
    const rows = database
      .prepare(
        // A union of queries, since each uses an index of its own; an OR would read the whole table.
        `SELECT id, at, event, request, node, facts FROM events WHERE request = :request
           UNION SELECT id, at, event, request, node, facts FROM events WHERE node = :node
           UNION SELECT id, at, event, request, node, facts FROM events WHERE lease = :lease
           UNION SELECT id, at, event, request, node, facts FROM events
             WHERE lease IS NOT NULL AND json_extract(facts, '$.job') = :job
         ORDER BY id DESC LIMIT ${AT_MOST}`,
      )
      .all({ request: request ?? null, node: node ?? null, lease: lease ?? null, job: job ?? null });
    return { events: rows.reverse().map(pastEvent), problem: null };
  } catch (error) {
    return noHistory(`the journal cannot be read: ${messageOf(error)}`);
  }
}

/** Rows that are looked through for the latest of a kind, at most: a long journal must not cost a start. */
const LOOKED_AT = 50_000;
/** The most that are returned. */
const MOST_LATEST = 5_000;

/** The latest events of these names, oldest first. Never throws. */
export function latestIn(database: DatabaseSync, names: readonly string[]): History {
  try {
    const rows = database
      .prepare(
        `SELECT id, at, event, request, node, facts FROM (SELECT * FROM events ORDER BY id DESC LIMIT ${LOOKED_AT})
         WHERE event IN (${names.map(() => "?").join(", ")}) ORDER BY id DESC LIMIT ${MOST_LATEST}`,
      )
      .all(...names);
    return { events: rows.reverse().map(pastEvent), problem: null };
  } catch (error) {
    return noHistory(`the journal cannot be read: ${messageOf(error)}`);
  }
}

/** A row as an event. Throws for facts that are no JSON; the callers turn that into a problem. */
function pastEvent(row: Record<string, unknown>): PastEvent {
  const text = (value: unknown) => (typeof value === "string" ? value : null);
  return {
    at: Number(row.at),
    event: String(row.event),
    request: text(row.request),
    node: text(row.node),
    facts: JSON.parse(String(row.facts)) as Record<string, unknown>,
  };
}
