import { renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { backup as copyOnline, DatabaseSync, type StatementSync } from "node:sqlite";
import { syncPathSync } from "@nodeyard/runtime";
import type { ZnodeRow } from "../../engine/index.ts";
import { Refusal } from "../errors.ts";
import type { Batch, SessionRow, Snapshot } from "../store.ts";
import { readOpenings, writeOpenings } from "./openings.ts";
import { migrate } from "./schema.ts";

/** 2024-01-01T00:00:00Z in seconds. An epoch after a restore is the number of seconds since then, which fits 31 bits until 2092. */
const EPOCH_ORIGIN = 1_704_067_200;
/** Most sequence numbers of one parent that the original may have issued after the copy was made. */
const LOST_NUMBERS = 1_000_000;

/**
 * The tree's file, opened exclusively for this process.
 *
 * `locking_mode=EXCLUSIVE` holds a kernel lock that ends with the process, so it cannot become stale; it also keeps the
 * WAL index in memory. No other code of the process may open the file: closing any descriptor of it would release the
 * POSIX locks.
 */
export class SqliteFile {
  readonly #db: DatabaseSync;
  readonly #path: string;
  /** Inode number of the file at the time of opening. `commit` compares it, to notice that the file was replaced. */
  readonly #inode: bigint;
  readonly #put: StatementSync;
  readonly #delete: StatementSync;
  readonly #putSession: StatementSync;
  readonly #deleteSession: StatementSync;
  readonly #meta: StatementSync;

  private constructor(db: DatabaseSync, path: string) {
    this.#db = db;
    this.#path = path;
    this.#inode = statSync(path, { bigint: true }).ino & 0x7fff_ffff_ffff_ffffn;
    this.#put = db.prepare(
      `INSERT INTO znode VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (path) DO UPDATE SET
         data = excluded.data, czxid = excluded.czxid, mzxid = excluded.mzxid, pzxid = excluded.pzxid,
         ctime = excluded.ctime, mtime = excluded.mtime, version = excluded.version,
         cversion = excluded.cversion, aversion = excluded.aversion, owner = excluded.owner,
         acl = excluded.acl`,
    );
    this.#delete = db.prepare("DELETE FROM znode WHERE path = ?");
    this.#putSession = db.prepare("INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?)");
    this.#deleteSession = db.prepare("DELETE FROM session WHERE id = ?");
    this.#meta = db.prepare("UPDATE meta SET value = ? WHERE key = ?");
  }

  /** Locks, checks and migrates the file at `path`. Throws `Refusal` for problems that an operator can fix. */
  static open(path: string): SqliteFile {
    const db = new DatabaseSync(path, { timeout: 0 });
    try {
      db.exec("PRAGMA locking_mode = EXCLUSIVE");
      db.exec("PRAGMA journal_mode = WAL");
      db.exec("PRAGMA synchronous = FULL");
      db.exec("BEGIN EXCLUSIVE; COMMIT");
      const verdict = db.prepare("PRAGMA quick_check(1)").get()?.quick_check;
      if (verdict !== "ok") throw new Refusal("damaged", damaged(path, String(verdict)));
      migrate(db, path);
      return new SqliteFile(db, path);
    } catch (error) {
      db.close();
      throw refusalOf(error, path);
    }
  }

  /**
   * Reads the whole file and counts this opening. Starts a new epoch of zxids when the file is a copy of another one: it is
   * marked as a backup, it has another inode, or it was opened less often than the count beside it says. Throws Refusal for a tree that
   * has moved to a ZooKeeper, unless that is what the caller wants to see.
   */
  read(nowMs: number, away: "refused" | "accepted" = "refused"): Snapshot {
    const meta = this.#readMeta();
    const movedAt = this.movedAt();
    if (movedAt !== undefined && away === "refused")
      throw new Refusal(
        "moved",
        `the tree of ${this.#path} moved to a ZooKeeper at ${new Date(movedAt).toISOString()}: start launchers and builders with a configuration that names it in zookeeper-servers, or take the tree back with "nodeyard promote --back --data FOLDER"`,
      );
    const file = this.#inode;
    const moved = meta("file") !== 0n && meta("file") !== file;
    const opened = readOpenings(this.#path);
    const stale = opened > meta("boot");
    const copied = meta("copied") !== 0n || moved || stale;
    const zxid = copied ? nextEpoch(meta("zxid"), nowMs) : meta("zxid");
    // Above both counts, so that no session id is issued twice.
    const boot = (stale ? opened : meta("boot")) + 1n;
    this.#transaction(() => {
      if (copied) this.#countAbove(zxid >> 32n);
      this.#meta.run(zxid, "zxid");
      this.#meta.run(boot, "boot");
      this.#meta.run(file, "file");
      this.#meta.run(0n, "copied");
    });
    writeOpenings(this.#path, boot);
    return { zxid, boot: Number(boot), znodes: this.#readZnodes(), sessions: this.#readSessions() };
  }

  /** Wall time in milliseconds at which the tree moved to a ZooKeeper; undefined: it is here. */
  movedAt(): number | undefined {
    const moved = this.#readMeta()("moved");
    return moved === 0n ? undefined : Number(moved);
  }

  /** Marks the tree as moved, durably: from now on it is refused here. */
  moveAway(nowMs: number): void {
    this.#transaction(() => this.#db.prepare("INSERT INTO meta VALUES ('moved', ?)").run(BigInt(nowMs)));
  }

  /** Fills a new file with a tree that was elsewhere; its zxids go on. `boot`: how often the file that it replaces was opened. */
  fill(batch: Batch, boot: bigint): void {
    this.commit(batch);
    this.#transaction(() => this.#meta.run(boot, "boot"));
  }

  /**
   * Continues sequence numbers from the new epoch, so that no number is issued again that the original issued after the copy was made.
   * Otherwise a new node could get the number of a lost node, and would find that node's machine under its tag, with its user on it.
   */
  #countAbove(epoch: bigint): void {
    this.#db.prepare("UPDATE znode SET cversion = max(cversion + ?, ?)").run(LOST_NUMBERS, epoch);
  }

  /**
   * Writes a batch durably. Also throws when the file is no longer at its path: data written to a deleted or replaced file
   * is lost when the process ends, so it must not be acknowledged (rule 10).
   */
  commit(batch: Batch): void {
    this.#transaction(() => {
      for (const path of batch.deletes) this.#delete.run(path);
      for (const row of batch.puts) this.#putZnode(row);
      for (const id of batch.sessionDeletes) this.#deleteSession.run(id);
      for (const row of batch.sessionPuts)
        this.#putSession.run(row.id, row.kind, row.timeoutMs, row.password);
      this.#meta.run(batch.zxid, "zxid");
    });
    const inode = statSync(this.#path, { bigint: true, throwIfNoEntry: false })?.ino;
    if (inode === undefined || (inode & 0x7fff_ffff_ffff_ffffn) !== this.#inode)
      throw new Error(
        `${this.#path} was ${inode === undefined ? "deleted" : "replaced"} under the running process; stop it before you move its files`,
      );
  }

  /**
   * Copies the file while it is in use. The copy appears at `path` complete, durable and marked as a copy. `between` is called between the
   * steps of the copy and may commit; a commit at any other time can make the copy fail.
   */
  async backup(path: string, between: () => void): Promise<void> {
    const partial = `${path}.partial`;
    rmSync(partial, { force: true });
    try {
      await copyOnline(this.#db, partial, { rate: 256, progress: between });
      const copy = new DatabaseSync(partial);
      try {
        copy.exec("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL");
        copy.exec("UPDATE meta SET value = 1 WHERE key = 'copied'");
      } finally {
        copy.close();
      }
      renameSync(partial, path);
      syncPathSync(dirname(path));
    } catch (error) {
      rmSync(partial, { force: true });
      throw error;
    }
  }

  close(): void {
    this.#db.close();
  }

  #putZnode(row: ZnodeRow): void {
    this.#put.run(
      row.path,
      row.data,
      row.czxid,
      row.mzxid,
      row.pzxid,
      row.ctime,
      row.mtime,
      row.version,
      row.cversion,
      row.aversion,
      row.ephemeralOwner,
      row.acl,
    );
  }

  #transaction(work: () => void): void {
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      work();
      this.#db.exec("COMMIT");
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      throw error;
    }
  }

  #readMeta(): (key: string) => bigint {
    const statement = this.#db.prepare("SELECT key, value FROM meta");
    statement.setReadBigInts(true);
    const values = new Map(statement.all().map((row) => [row.key as string, row.value as bigint]));
    return (key) => values.get(key) ?? 0n;
  }

  #readZnodes(): ZnodeRow[] {
    const statement = this.#db.prepare("SELECT * FROM znode");
    statement.setReadBigInts(true);
    const rows: ZnodeRow[] = [];
    for (const row of statement.iterate()) {
      rows.push({
        path: row.path as string,
        data: row.data as Uint8Array | null,
        czxid: row.czxid as bigint,
        mzxid: row.mzxid as bigint,
        pzxid: row.pzxid as bigint,
        ctime: Number(row.ctime),
        mtime: Number(row.mtime),
        version: Number(row.version),
        cversion: Number(row.cversion),
        aversion: Number(row.aversion),
        ephemeralOwner: row.owner as bigint,
        acl: row.acl as string | null,
      });
    }
    return rows;
  }

  #readSessions(): SessionRow[] {
    const statement = this.#db.prepare("SELECT * FROM session");
    statement.setReadBigInts(true);
    return statement.all().map((row) => ({
      id: row.id as bigint,
      kind: row.kind === "wire" ? "wire" : "process",
      timeoutMs: Number(row.timeout_ms),
      password: row.password as Uint8Array,
    }));
  }
}

/**
 * The first zxid of an epoch above all epochs that the original can have reached. It uses seconds because one backup may
 * be restored twice: counting up from the copy would give both the same epoch.
 */
function nextEpoch(zxid: bigint, nowMs: number): bigint {
  const now = BigInt(Math.max(0, Math.floor(nowMs / 1000) - EPOCH_ORIGIN));
  const next = (zxid >> 32n) + 1n;
  return (now > next ? now : next) << 32n;
}

function refusalOf(error: unknown, path: string): unknown {
  if (error instanceof Refusal) return error;
  const code = Number((error as { errcode?: number }).errcode ?? 0) & 0xff;
  if (code === 5 || code === 6) return new Refusal("in-use", path, error);
  if (code === 11 || code === 26)
    return new Refusal("damaged", damaged(path, (error as Error).message), error);
  return error;
}

function damaged(path: string, what: string): string {
  return `${path} is damaged (${what}); restore it from a backup`;
}
