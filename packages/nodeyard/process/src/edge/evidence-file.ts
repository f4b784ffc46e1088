import { DatabaseSync } from "node:sqlite";
import { type Evidence, memoryEvidence } from "@nodeyard/driver";
import { type Clock, messageOf } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";

/** The evidence's file in a state folder. */
export const EVIDENCE = "evidence.sqlite";

/** What a deleted server left behind is found within minutes; a cloud that was away for weeks is still cleaned. */
const KEEP_MS = 30 * 24 * 3_600_000;
/** Old records are removed when the file is opened, and after each so many new ones. */
const PRUNE_EVERY = 1_000;

/** Evidence that outlives the process; after `close` nothing more is recorded. */
export interface FileEvidence extends Evidence {
  close(): void;
}

/**
 * Evidence that a resource is ours, in a SQLite file: ports and volumes are deleted by it after the node's record is gone. If the
 * file cannot be used, resources without evidence are logged and left alone. Never throws.
 */
export function openEvidence(
  file: string,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): FileEvidence {
  try {
    return new EvidenceFile(file, clock, log);
  } catch (error) {
    log.error(
      { file, error: messageOf(error) },
      "cannot write the evidence file; leaks of untagged resources are found only until the next start",
    );
    return { ...memoryEvidence(), close() {} };
  }
}

/** Synchronous, as the contract of drivers has it. An error is logged once, and costs only the evidence. */
class EvidenceFile implements FileEvidence {
  readonly #db: DatabaseSync;
  readonly #clock: Clock;
  readonly #log: Log;
  /** Whether an error was logged. */
  #broken = false;
  #recorded = 0;

  constructor(file: string, clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
    this.#db = new DatabaseSync(file, { timeout: 1_000 });
    this.#db.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = NORMAL;
      CREATE TABLE IF NOT EXISTS evidence (
        type TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL,
        installation TEXT NOT NULL, provider TEXT NOT NULL, pool TEXT NOT NULL, node TEXT NOT NULL,
        PRIMARY KEY (type, id)
      ) WITHOUT ROWID;
    `);
    this.#prune();
  }

  record(...[type, id, tag]: Parameters<Evidence["record"]>): void {
    this.#try(() =>
      this.#db
        .prepare("INSERT OR REPLACE INTO evidence VALUES (?, ?, ?, ?, ?, ?, ?)")
        .run(type, id, this.#clock.now(), tag.installation, tag.provider, tag.pool, tag.nodeId),
    );
    if (++this.#recorded % PRUNE_EVERY === 0) this.#try(() => this.#prune());
  }

  /** Null also where the file cannot be read: then the resource is not deleted, which is the safe side. */
  tagOf(type: string, id: string): ReturnType<Evidence["tagOf"]> {
    const row = this.#try(() =>
      this.#db
        .prepare("SELECT installation, provider, pool, node FROM evidence WHERE type = ? AND id = ?")
        .get(type, id),
    );
    if (row === undefined) return null;
    const { installation, provider, pool, node } = row;
    return {
      installation: String(installation),
      provider: String(provider),
      pool: String(pool),
      nodeId: String(node),
    };
  }

  close(): void {
    this.#db.close();
  }

  /** Removes records that are older than KEEP_MS. */
  #prune(): void {
    this.#db.prepare("DELETE FROM evidence WHERE at < ?").run(this.#clock.now() - KEEP_MS);
  }

  /** Said once: a full disk would fill the log as well. */
  #try<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      if (!this.#broken) this.#log.error({ error: messageOf(error) }, "the evidence file cannot be used");
      this.#broken = true;
      return undefined;
    }
  }
}
