import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { AppliedWrite } from "@nodeyard/tree";
import { decodeWrite } from "./lines.ts";

/** What the store's file holds while no process has it open. */
export interface OnDisk {
  readonly zxid: bigint;
  readonly paths: ReadonlySet<string>;
  /** Ephemerals of sessions that end with their process, by session. */
  readonly orphans: ReadonlyMap<bigint, readonly string[]>;
}

export function readDisk(stateFolder: string): OnDisk {
  const db = new DatabaseSync(join(stateFolder, "tree.sqlite"));
  try {
    const read = (sql: string) => {
      const statement = db.prepare(sql);
      statement.setReadBigInts(true);
      return statement.all();
    };
    const orphans = new Map<bigint, string[]>();
    for (const row of read(
      "SELECT path, owner FROM znode JOIN session ON owner = id WHERE kind = 'process'",
    )) {
      const owner = row.owner as bigint;
      orphans.set(owner, [...(orphans.get(owner) ?? []), row.path as string]);
    }
    return {
      zxid: read("SELECT value FROM meta WHERE key = 'zxid'")[0]!.value as bigint,
      paths: new Set(read("SELECT path FROM znode").map((row) => row.path as string)),
      orphans,
    };
  } finally {
    db.close();
  }
}

/**
 * The raw log of an embedded tree over the lives of its processes: lines that `inside/record.ts` wrote, cut at each death to what
 * the disk holds, since what was not durable never happened.
 */
export class EmbeddedLog {
  readonly #file: string;
  readonly #writes: AppliedWrite[] = [];
  readonly #paths = new Set(["/"]);
  /** Sessions that ended with a process that died. */
  readonly #ended = new Set<bigint>();
  #read = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /** Reads what the process that just died has written. Throws when the disk lacks something that was acknowledged. */
  died(disk: OnDisk): void {
    for (const write of this.#unread()) if (write.zxid <= disk.zxid) this.#add(write);
    const lost = oneMore(this.#paths, disk.paths);
    // A process that died before it opened the store has not yet removed the ephemerals of its predecessor.
    const left = new Set(
      [...disk.orphans].flatMap(([session, paths]) => (this.#ended.has(session) ? paths : [])),
    );
    const extra = oneMore(disk.paths, new Set([...this.#paths, ...left]));
    if (lost !== undefined) throw new Error(`${lost} is in the log and not on the disk (zxid ${disk.zxid})`);
    if (extra !== undefined)
      throw new Error(`${extra} is on the disk and not in the log (zxid ${disk.zxid})`);
    for (const [session, paths] of disk.orphans) {
      if (this.#ended.has(session)) continue;
      this.#ended.add(session);
      this.#add({
        zxid: disk.zxid,
        at: this.#writes.at(-1)?.at ?? 0,
        client: String(session),
        session,
        ops: paths.map((path) => ({ op: "delete", path })),
        results: [],
        sessionEnd: true,
      });
    }
  }

  all(): readonly AppliedWrite[] {
    for (const write of this.#unread()) this.#add(write);
    return this.#writes;
  }

  #add(write: AppliedWrite): void {
    this.#writes.push(write);
    for (const { op, path } of write.ops) {
      if (op === "create") this.#paths.add(path);
      else if (op === "delete") this.#paths.delete(path);
    }
  }

  #unread(): AppliedWrite[] {
    if (!existsSync(this.#file)) return [];
    const text = readFileSync(this.#file, "utf8");
    const fresh = text.slice(this.#read);
    this.#read = text.length;
    return fresh
      .split("\n")
      .map(decodeWrite)
      .filter((write) => write !== undefined);
  }
}

/** An element of `some` that is not in `others`. */
function oneMore(some: ReadonlySet<string>, others: ReadonlySet<string>): string | undefined {
  for (const one of some) if (!others.has(one)) return one;
  return undefined;
}
