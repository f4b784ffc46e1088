import type { DatabaseSync } from "node:sqlite";
import { Refusal } from "../errors.ts";

/** "NdYd" as SQLite's application_id, by which files of Nodeyard differ from other SQLite files. */
const APPLICATION_ID = 0x4e645964;

/** Step i migrates a file from version i to i + 1. A released step must never change: existing files were made by it. */
const MIGRATIONS: readonly string[] = [
  `CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
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
   INSERT INTO meta VALUES ('zxid', 0), ('boot', 0), ('file', 0), ('copied', 0);`,
  // Allows null data and adds access lists. SQLite can drop a NOT NULL only by rebuilding the table.
  `CREATE TABLE znode_with_acl (
     path TEXT PRIMARY KEY, data BLOB,
     czxid INTEGER NOT NULL, mzxid INTEGER NOT NULL, pzxid INTEGER NOT NULL,
     ctime INTEGER NOT NULL, mtime INTEGER NOT NULL,
     version INTEGER NOT NULL, cversion INTEGER NOT NULL, aversion INTEGER NOT NULL,
     owner INTEGER NOT NULL, acl TEXT
   ) STRICT;
   INSERT INTO znode_with_acl SELECT *, NULL FROM znode;
   DROP TABLE znode;
   ALTER TABLE znode_with_acl RENAME TO znode;`,
];

/** Kept in the file as SQLite's user_version. */
const SCHEMA_VERSION = MIGRATIONS.length;

/** Migrates an open file to the current schema in one transaction. Refuses files of a later release or of another program. */
export function migrate(db: DatabaseSync, path: string): void {
  const version = pragma(db, "user_version");
  const application = pragma(db, "application_id");
  const empty = version === 0 && db.prepare("SELECT count(*) AS n FROM sqlite_schema").get()?.n === 0;
  if (!empty && application !== APPLICATION_ID)
    throw new Refusal("foreign", `${path} is an SQLite file of another program; choose another state folder`);
  if (version > SCHEMA_VERSION)
    throw new Refusal(
      "newer",
      `${path} has layout ${version}, this release reads up to ${SCHEMA_VERSION}; start the release that wrote it, or a later one`,
    );
  if (version === SCHEMA_VERSION) return;
  // One transaction: a process that dies in between leaves the old layout and the old number.
  db.exec("BEGIN IMMEDIATE");
  try {
    for (const step of MIGRATIONS.slice(version)) db.exec(step);
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`);
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

/** A number in the file's header; 0 in a new file. */
function pragma(db: DatabaseSync, name: string): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0);
}
