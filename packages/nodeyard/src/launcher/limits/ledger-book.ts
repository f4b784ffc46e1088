import { backoff, type Clock, NodeyardError, type Random, sleep } from "@nodeyard/runtime";
import { CommitFailed, type Op, type OpResult, type Tree, TreeError } from "@nodeyard/tree";
import { makePath } from "../fence/roots.ts";

/** The pool's limit is used up by what all Nodeyard launchers made. */
export class LimitReached extends NodeyardError {
  constructor(scope: string, limit: number, count: number) {
    super("launcher.limit_reached", `pool ${scope}: ${count} of ${limit} nodes exist (max-servers)`);
  }
}

interface Entry {
  readonly change: number;
  readonly limit: number;
  readonly ops: readonly Op[];
  readonly settle: PromiseWithResolvers<readonly OpResult[]>;
  attempts: number;
}

/** Records created or deleted in one commit, at most. */
const BATCH = 64;
const ATTEMPTS = 10;
const VERSION = 1;

/**
 * One ledger: how many node records of a pool exist, in a znode whose versioned set is part of every commit that creates or
 * deletes one. One commit is in flight at a time, and what arrives meanwhile goes together into the next: a chain of
 * guessed versions would let another launcher's write pass for our own that failed.
 */
export class LedgerBook {
  readonly #tree: Tree;
  readonly #handles: { readonly clock: Clock; readonly random: Random };
  readonly #scope: string;
  readonly #path: string;
  readonly #countRecords: () => Promise<number>;
  #queue: Entry[] = [];
  #known: { readonly count: number; readonly version: number } | undefined;
  #busy = false;

  constructor(
    tree: Tree,
    handles: { readonly clock: Clock; readonly random: Random },
    at: { readonly scope: string; readonly path: string },
    countRecords: () => Promise<number>,
  ) {
    this.#tree = tree;
    this.#handles = handles;
    this.#scope = at.scope;
    this.#path = at.path;
    this.#countRecords = countRecords;
  }

  /** Commits `ops` with the count changed by `change`. Rejects with LimitReached, or as the commit alone would. */
  commit(change: number, limit: number, ops: readonly Op[]): Promise<readonly OpResult[]> {
    const settle = Promise.withResolvers<readonly OpResult[]>();
    this.#queue.push({ change, limit, ops, settle, attempts: 0 });
    if (!this.#busy) void this.#work();
    return settle.promise;
  }

  /**
   * Counts the records anew and sets the ledger right. Exact: the set is refused when any Nodeyard launcher created or deleted
   * a record since the ledger was read. Returns how far it was off, or undefined when that happened.
   */
  async recount(): Promise<number | undefined> {
    const before = await this.#read();
    const count = await this.#countRecords();
    if (count === before.count) return 0;
    try {
      await this.#tree.set(this.#path, encode(count), { version: before.version });
    } catch (error) {
      if (error instanceof TreeError && error.code === "tree.bad_version") return undefined;
      throw error;
    } finally {
      this.#known = undefined;
    }
    return before.count - count;
  }

  async #work(): Promise<void> {
    this.#busy = true;
    let fresh = false;
    while (this.#queue.length > 0) {
      try {
        if (this.#known === undefined) {
          this.#known = await this.#read();
          fresh = true;
        }
      } catch (error) {
        for (const entry of this.#queue.splice(0)) entry.settle.reject(error);
        break;
      }
      const batch = this.#takeBatch(this.#known.count, fresh);
      fresh = false;
      if (batch.length > 0) await this.#commit(batch, this.#known);
      else if (this.#queue.length > 0) this.#known = undefined;
    }
    this.#busy = false;
  }

  /** As many as fit. One that does not is refused only by what was just read: others may have deleted since the last commit. */
  #takeBatch(count: number, fresh: boolean): Entry[] {
    const batch: Entry[] = [];
    let sum = count;
    while (batch.length < BATCH) {
      const entry = this.#queue.shift();
      if (entry === undefined) break;
      if (entry.change > 0 && sum + entry.change > entry.limit) {
        if (!fresh) {
          this.#queue.unshift(entry);
          break;
        }
        entry.settle.reject(new LimitReached(this.#scope, entry.limit, sum));
        continue;
      }
      sum = Math.max(0, sum + entry.change);
      batch.push(entry);
    }
    return batch;
  }

  async #commit(
    batch: readonly Entry[],
    known: { readonly count: number; readonly version: number },
  ): Promise<void> {
    const count = batch.reduce((sum, entry) => Math.max(0, sum + entry.change), known.count);
    const ops = batch.flatMap((entry) => entry.ops);
    try {
      const results = await this.#tree.commit([
        ...ops,
        { op: "set", path: this.#path, data: encode(count), version: known.version },
      ]);
      this.#known = { count, version: known.version + 1 };
      let at = 0;
      for (const { settle, ops: own } of batch) {
        settle.resolve(results.slice(at, at + own.length));
        at += own.length;
      }
    } catch (error) {
      this.#known = undefined;
      await this.#refused(batch, ops.length, error);
    }
  }

  /** The culprit gets its own error, the others go into the next batch; an unknown outcome is everybody's. */
  async #refused(batch: readonly Entry[], last: number, error: unknown): Promise<void> {
    if (!(error instanceof CommitFailed)) {
      for (const { settle } of batch) settle.reject(error);
      return;
    }
    let at = 0;
    const again: Entry[] = [];
    for (const entry of batch) {
      const index = error.index - at;
      at += entry.ops.length;
      if (index >= 0 && index < entry.ops.length) entry.settle.reject(new CommitFailed(index, error.reason));
      else if (error.index === last && ++entry.attempts > ATTEMPTS) entry.settle.reject(error);
      else again.push(entry);
    }
    this.#queue.unshift(...again);
    if (error.index !== last) return;
    if (error.reason.code === "tree.no_node") return;
    const attempt = again[0]?.attempts ?? 0;
    if (attempt > 1) await sleep(this.#handles.clock, backoff(this.#handles.random, attempt, 2, 200));
  }

  async #read(): Promise<{ readonly count: number; readonly version: number }> {
    for (;;) {
      try {
        const found = await this.#tree.get(this.#path);
        const count = decode(found.data);
        if (count !== undefined) return { count, version: found.stat.version };
        await this.#tree.set(this.#path, encode(await this.#countRecords()), { version: found.stat.version });
      } catch (error) {
        if (!(error instanceof TreeError)) throw error;
        if (error.code === "tree.bad_version") continue;
        if (error.code !== "tree.no_node") throw error;
        await this.#make();
      }
    }
  }

  async #make(): Promise<void> {
    await makePath(this.#tree, this.#path.slice(0, this.#path.lastIndexOf("/")));
    await this.#tree.create(this.#path, encode(await this.#countRecords())).catch((error: unknown) => {
      if (!(error instanceof TreeError) || error.code !== "tree.node_exists") throw error;
    });
  }
}

function encode(count: number): Uint8Array {
  return Buffer.from(JSON.stringify({ v: VERSION, instances: count }));
}

/** Undefined for what is no ledger: it is then counted anew. */
function decode(data: Uint8Array): number | undefined {
  try {
    const { instances } = JSON.parse(Buffer.from(data).toString()) as { instances?: unknown };
    return typeof instances === "number" && Number.isInteger(instances) && instances >= 0
      ? instances
      : undefined;
  } catch {
    return undefined;
  }
}
