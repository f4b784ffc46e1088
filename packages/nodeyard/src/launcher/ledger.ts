import type { NodeRecord } from "@nodeyard/model";
import { type Clock, messageOf, NodeyardError, sleep } from "@nodeyard/runtime";
import { CommitFailed, type CreateOp, type Op, type OpResult, type Tree, TreeError } from "@nodeyard/tree";
import type { Log } from "../telemetry/index.ts";
import { poolKey, type View } from "../view/index.ts";
import type { ServingPool } from "./context.ts";

/** The pool's limit is used up by what all Nodeyard launchers made. */
export class LimitReached extends NodeyardError {
  constructor(scope: string, limit: number, count: number) {
    super("launcher.limit_reached", `pool ${scope}: ${count} of ${limit} nodes exist (max-servers)`);
  }
}

interface Book {
  readonly path: string;
  count: number;
  version: number;
  /** The write that the next one must follow; sets are pipelined with versions that follow each other. */
  ready: Promise<void> | undefined;
}

const ROOT = "/nodeyard/limits";
const TRIES = 8;

/**
 * Limits that several launchers share, exact among Nodeyard's: `/nodeyard/limits/<provider>/<pool>` holds how many node
 * records exist, and its versioned set is part of the commit that creates or deletes one. Pools without a limit have
 * no ledger. What Python launchers do is only seen: `audit` corrects the count from the records at each resync.
 */
export class Ledgers {
  readonly #tree: Tree;
  readonly #clock: Clock;
  readonly #view: View;
  readonly #log: Log;
  readonly #books = new Map<string, Book>();
  readonly #limits = new Map<string, number>();

  constructor(tree: Tree, clock: Clock, view: View, log: Log) {
    this.#tree = tree;
    this.#clock = clock;
    this.#view = view;
    this.#log = log;
  }

  /** Sets a pool's limit; Infinity: no ledger is kept. */
  setLimit(key: string, limit: number): void {
    if (Number.isFinite(limit)) this.#limits.set(key, limit);
    else this.#limits.delete(key);
  }

  /** Creates a node record, counted. Rejects with LimitReached. Returns the path. */
  async createUnder(pool: ServingPool, create: CreateOp): Promise<string> {
    const limit = this.#limits.get(pool.key);
    if (limit === undefined)
      return (await this.#tree.create(create.path, create.data, { sequential: true })).path;
    const results = await this.#counted(pool.key, 1, limit, [create]);
    return (results[0] as Extract<OpResult, { op: "create" }>).path;
  }

  /** Carries out the commit that deletes a node record, counted. */
  async deleteFrom(record: NodeRecord, ops: readonly Op[]): Promise<void> {
    const key = poolKey(record.provider, record.pool);
    if (!this.#limits.has(key)) await this.#tree.commit(ops);
    else await this.#counted(key, -1, Number.POSITIVE_INFINITY, ops);
  }

  /**
   * Compares every ledger with the records; one that is off twice in a row is set right. To be called at each resync,
   * with a complete view.
   */
  async audit(): Promise<void> {
    for (const key of this.#limits.keys()) {
      const seen = this.#view.nodes.byPool.get(key).size;
      const book = await this.#open(key);
      if (book.count === seen) {
        this.#off.delete(key);
        continue;
      }
      if (this.#off.get(key) === book.count - seen) {
        this.#log.warn(
          { pool: key, ledger: book.count, records: seen },
          "a ledger was off twice in a row; it is set to what exists",
        );
        await this.#counted(key, seen - book.count, Number.POSITIVE_INFINITY, []).catch((error) =>
          this.#log.warn({ pool: key, error: messageOf(error) }, "could not set a ledger right"),
        );
        this.#off.delete(key);
      } else this.#off.set(key, book.count - seen);
    }
  }
  readonly #off = new Map<string, number>();

  async #counted(
    key: string,
    change: number,
    limit: number,
    ops: readonly Op[],
  ): Promise<readonly OpResult[]> {
    for (let attempt = 0; ; attempt++) {
      const book = await this.#open(key);
      const count = Math.max(0, book.count + change);
      if (change > 0 && count > limit) throw new LimitReached(key, limit, book.count);
      const version = book.version;
      book.count = count;
      book.version = version + 1;
      try {
        const results = await this.#tree.commit([
          ...ops,
          { op: "set", path: book.path, data: encode(count), version },
        ]);
        return results.slice(0, ops.length);
      } catch (error) {
        this.#books.delete(key);
        const stale =
          error instanceof CommitFailed &&
          (error.index === ops.length || error.reason.code === "tree.rolled_back");
        if (!stale || attempt >= TRIES) throw error;
        await sleep(this.#clock, 5 * 2 ** attempt);
      }
    }
  }

  /** The ledger as last known; read, or made from the records, when it is not. */
  async #open(key: string): Promise<Book> {
    const known = this.#books.get(key);
    if (known !== undefined) {
      await known.ready;
      return this.#books.get(key) ?? this.#open(key);
    }
    const book: Book = { path: pathOf(key), count: 0, version: 0, ready: undefined };
    this.#books.set(key, book);
    book.ready = this.#load(key, book);
    try {
      await book.ready;
    } catch (error) {
      if (this.#books.get(key) === book) this.#books.delete(key);
      throw error;
    }
    return book;
  }

  async #load(key: string, book: Book): Promise<void> {
    for (;;) {
      try {
        const found = await this.#tree.get(book.path);
        book.count = decode(found.data, this.#view.nodes.byPool.get(key).size);
        book.version = found.stat.version;
        return;
      } catch (error) {
        if (!(error instanceof TreeError) || error.code !== "tree.no_node") throw error;
        const parents = ["/nodeyard", ROOT, book.path.slice(0, book.path.lastIndexOf("/"))];
        for (const path of parents) await this.#tree.create(path).catch(ignoreExisting);
        await this.#tree
          .create(book.path, encode(this.#view.nodes.byPool.get(key).size))
          .catch(ignoreExisting);
      }
    }
  }
}

function pathOf(key: string): string {
  const [provider, pool] = key.split("/") as [string, string];
  return `${ROOT}/${encodeURIComponent(provider)}/${encodeURIComponent(pool)}`;
}

function encode(count: number): Uint8Array {
  return Buffer.from(JSON.stringify({ v: 1, instances: count }));
}

function decode(data: Uint8Array, fallback: number): number {
  try {
    const { instances } = JSON.parse(Buffer.from(data).toString()) as { instances?: unknown };
    return typeof instances === "number" && instances >= 0 ? instances : fallback;
  } catch {
    return fallback;
  }
}

function ignoreExisting(error: unknown): void {
  if (!(error instanceof TreeError) || error.code !== "tree.node_exists") throw error;
}
