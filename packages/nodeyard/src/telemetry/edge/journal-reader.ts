import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { messageOf } from "@nodeyard/runtime";

/** An event of a journal, as it was written. */
export interface PastEvent {
  /** The writer's wall clock, milliseconds. */
  readonly at: number;
  /** One of journalEvents, or a name that a later release knows. */
  readonly event: string;
  readonly request: string | null;
  readonly node: string | null;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** What happened to one thing, oldest first; `problem` says why it is not known. */
export interface History {
  readonly events: readonly PastEvent[];
  readonly problem: string | null;
}

export interface Subject {
  readonly request?: string | undefined;
  readonly node?: string | undefined;
  readonly lease?: string | undefined;
}

const VERSION = 1;
/** The youngest so many: a request that waits for a week is still explained by them. */
const AT_MOST = 200;

/** Reads a journal that another process may be writing. Never throws: a journal is worth less than the answer without it. */
export function readJournal(file: string, { request, node, lease }: Subject): History {
  if (!existsSync(file)) return { events: [], problem: `there is no journal ${file}` };
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file, { readOnly: true, timeout: 2_000 });
    const { user_version: found } = database.prepare("PRAGMA user_version").get() as { user_version: number };
    if (found > VERSION)
      return { events: [], problem: `${file} was written by a later release (layout ${found})` };
    const rows = database
      .prepare(
        `SELECT at, event, request, node, facts FROM events WHERE request = :request OR node = :node
           OR (:lease IS NOT NULL AND event LIKE 'lease.%' AND json_extract(facts, '$.lease') = :lease)
         ORDER BY id DESC LIMIT ${AT_MOST}`,
      )
      .all({ request: request ?? null, node: node ?? null, lease: lease ?? null });
    return { events: rows.reverse().map(pastEvent), problem: null };
  } catch (error) {
    return { events: [], problem: `the journal ${file} cannot be read: ${messageOf(error)}` };
  } finally {
    database?.close();
  }
}

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
