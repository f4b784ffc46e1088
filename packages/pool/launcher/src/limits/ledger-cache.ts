import { add, exceeded, type Resources } from "@nodeyard/driver";
import { backoff, type Clock, NodeyardError, type Random, sleep } from "@nodeyard/runtime";
import { CommitFailed, type Op, type OpResult, requestBytes, type Tree, TreeError } from "@nodeyard/tree";
import type { ScopeKey } from "./holdings.ts";
import { encodeLedger, type Ledger, ledgerPath } from "./ledger-znode.ts";

/**
 * A limit is used up by the nodes of all Nodeyard launchers. The scheduler has planned with a view that did not show them yet; the
 * request is planned again.
 */
export class LimitReached extends NodeyardError {
  readonly scope: ScopeKey;
  readonly resource: string;
  /** What the ledger said when it refused, before the refused amount. */
  readonly used: number;

  constructor(scope: ScopeKey, resource: string, limit: number, used: number) {
    super("launcher.limit_reached", `${scope}: ${used} of ${limit} ${resource} are taken`);
    this.scope = scope;
    this.resource = resource;
    this.used = used;
  }
}

/** One scope's part of an entry. Without a limit it is counted, and never refused. */
export interface Posting {
  readonly scope: ScopeKey;
  /** Negative when resources are returned. */
  readonly amount: Resources;
  readonly limit: Resources | undefined;
}

/** One commit of a caller that waits for its turn. */
interface Entry {
  readonly postings: readonly Posting[];
  readonly ops: readonly Op[];
  readonly settle: PromiseWithResolvers<readonly OpResult[]>;
  /** How often a commit with it was refused because another launcher had written a ledger. */
  attempts: number;
}

/** Entries in one commit, at most. */
const BATCH = 64;
/** Bytes that the set of one ledger is counted for, well above what its sum and its path take. */
const SET_BYTES = 2_048;
/** Refusals for a moved ledger after which an entry is given up. */
const ATTEMPTS = 10;

/**
 * The ledgers that this process writes. A ledger is a znode with the sum of what all records use of one scope's limits; its versioned set
 * is part of each commit that changes the sum. One such commit is in flight at a time. Postings that arrive during that time go
 * together into the next commit. Several commits in flight would need guessed versions, and then a write of another launcher could be
 * mistaken for a failed one of our own.
 */
export class LedgerCache {
  readonly #tree: Tree;
  readonly #handles: { readonly clock: Clock; readonly random: Random };
  readonly #read: (scopes: readonly ScopeKey[]) => Promise<readonly Ledger[]>;
  /** Ledgers as this process last read or wrote them. An entry is removed when it may be out of date. */
  readonly #known = new Map<ScopeKey, Ledger>();
  /** First come, first served, but for entries that are tried again, which come first. */
  #queue: Entry[] = [];
  /** Whether `#work` runs; one at a time. */
  #busy = false;
  /** The most entries of the next commit: fewer after a commit was refused for its size, as a long chroot may cause. */
  #most = BATCH;

  constructor(
    tree: Tree,
    handles: { readonly clock: Clock; readonly random: Random },
    /** Ledgers as they are, made where there are none. */
    read: (scopes: readonly ScopeKey[]) => Promise<readonly Ledger[]>,
  ) {
    this.#tree = tree;
    this.#handles = handles;
    this.#read = read;
  }

  /** Commits `ops` together with their postings. Rejects with LimitReached, or with the error of the commit. */
  commit(postings: readonly Posting[], ops: readonly Op[]): Promise<readonly OpResult[]> {
    const settle = Promise.withResolvers<readonly OpResult[]>();
    this.#queue.push({ postings, ops, settle, attempts: 0 });
    if (!this.#busy) void this.#work();
    return settle.promise;
  }

  async #work(): Promise<void> {
    this.#busy = true;
    while (this.#queue.length > 0) {
      const first = this.#queue.slice(0, BATCH);
      let fresh: ReadonlySet<ScopeKey>;
      try {
        fresh = await this.#learn(first);
      } catch (error) {
        for (const { settle } of this.#queue.splice(0, first.length)) settle.reject(error);
        continue;
      }
      // Later postings join this commit up to the first one whose ledgers have not been read.
      const stop = this.#queue.findIndex(({ postings }) =>
        postings.some(({ scope }) => !this.#known.has(scope)),
      );
      const known = this.#queue.slice(0, Math.min(this.#most, stop < 0 ? this.#queue.length : stop));
      const taken = this.#queue.splice(0, fitting(known, this.#tree.capabilities.maxRequestBytes));
      const { batch, sums, stale } = this.#post(taken, fresh);
      if (batch.length > 0) await this.#commit(batch, sums);
      for (const scope of stale) this.#known.delete(scope);
    }
    this.#busy = false;
  }

  /** Reads the ledgers that are needed and not known; returns which they were. */
  async #learn(entries: readonly Entry[]): Promise<ReadonlySet<ScopeKey>> {
    const scopes = new Set(entries.flatMap(({ postings }) => postings.map(({ scope }) => scope)));
    const missing = [...scopes].filter((scope) => !this.#known.has(scope));
    if (missing.length === 0) return new Set();
    const ledgers = await this.#read(missing);
    for (const [index, scope] of missing.entries()) this.#known.set(scope, ledgers[index]!);
    return new Set(missing);
  }

  /**
   * Posts as many entries as fit, and returns the new sums. An entry that does not fit is refused only when its ledgers were just read,
   * because other launchers may have returned resources since the last commit. Otherwise the ledgers are read again, and the entry comes
   * first in the next commit.
   */
  #post(
    entries: readonly Entry[],
    fresh: ReadonlySet<ScopeKey>,
  ): {
    readonly batch: readonly Entry[];
    readonly sums: ReadonlyMap<ScopeKey, Resources>;
    readonly stale: ReadonlySet<ScopeKey>;
  } {
    const sums = new Map<ScopeKey, Resources>();
    const sumOf = (scope: ScopeKey) => sums.get(scope) ?? this.#known.get(scope)?.sum ?? {};
    const batch: Entry[] = [];
    const again: Entry[] = [];
    const stale = new Set<ScopeKey>();
    for (const entry of entries) {
      const over = overLimit(entry, sumOf);
      if (over === undefined) {
        for (const { scope, amount } of entry.postings)
          sums.set(scope, atLeastNothing(add(sumOf(scope), amount)));
        batch.push(entry);
      } else if (fresh.has(over.scope)) {
        entry.settle.reject(new LimitReached(over.scope, over.resource, over.limit, over.used));
      } else {
        stale.add(over.scope);
        again.push(entry);
      }
    }
    this.#queue.unshift(...again);
    return { batch, sums, stale };
  }

  /** Commits a batch with the new sums of its ledgers, each under the version that was read. */
  async #commit(batch: readonly Entry[], sums: ReadonlyMap<ScopeKey, Resources>): Promise<void> {
    const ops = batch.flatMap((entry) => entry.ops);
    const scopes = [...sums.keys()];
    const sets = scopes.map((scope): Op => {
      const { version } = this.#known.get(scope)!;
      return { op: "set", path: ledgerPath(scope), data: encodeLedger(sums.get(scope)!), version };
    });
    try {
      const results = await this.#tree.commit([...ops, ...sets]);
      this.#most = BATCH;
      for (const scope of scopes)
        this.#known.set(scope, { sum: sums.get(scope)!, version: this.#known.get(scope)!.version + 1 });
      let at = 0;
      for (const { settle, ops: own } of batch) {
        settle.resolve(results.slice(at, at + own.length));
        at += own.length;
      }
    } catch (error) {
      await this.#refused(batch, ops.length, scopes, error);
    }
  }

  /** The culprit gets its own error, the others go into the next batch; an unknown outcome is everybody's. */
  async #refused(
    batch: readonly Entry[],
    own: number,
    scopes: readonly ScopeKey[],
    error: unknown,
  ): Promise<void> {
    if (!(error instanceof CommitFailed)) {
      this.#most = BATCH;
      if (error instanceof TreeError && error.code === "tree.too_large" && batch.length > 1) {
        this.#most = batch.length >> 1;
        this.#queue.unshift(...batch);
        return;
      }
      for (const scope of scopes) this.#known.delete(scope);
      for (const { settle } of batch) settle.reject(error);
      return;
    }
    // The operations of the entries come first, then the sets of the ledgers: one of those means that another launcher wrote.
    const moved = error.index >= own;
    if (moved) for (const scope of scopes) this.#known.delete(scope);
    let at = 0;
    const again: Entry[] = [];
    for (const entry of batch) {
      const index = error.index - at;
      at += entry.ops.length;
      if (index >= 0 && index < entry.ops.length) entry.settle.reject(new CommitFailed(index, error.reason));
      else if (moved && ++entry.attempts > ATTEMPTS) entry.settle.reject(error);
      // Entries before and after the culprit were refused with it and are innocent.
      else again.push(entry);
    }
    this.#queue.unshift(...again);
    if (!moved || error.reason.code === "tree.no_node") return;
    const attempt = again[0]?.attempts ?? 0;
    if (attempt > 1) await sleep(this.#handles.clock, backoff(this.#handles.random, attempt, 2, 200));
  }
}

/** How many entries from the first on have room in one commit, with the sets of their ledgers. The first always goes. */
function fitting(entries: readonly Entry[], room: number): number {
  const scopes = new Set<ScopeKey>();
  let bytes = 0;
  for (const [index, { ops, postings }] of entries.entries()) {
    for (const { scope } of postings) scopes.add(scope);
    bytes += requestBytes(ops);
    if (index > 0 && bytes + scopes.size * SET_BYTES > room) return index;
  }
  return entries.length;
}

/** The first limit that an entry would pass. What gives back is never refused. */
function overLimit(
  { postings }: Entry,
  sumOf: (scope: ScopeKey) => Resources,
):
  | { readonly scope: ScopeKey; readonly resource: string; readonly limit: number; readonly used: number }
  | undefined {
  for (const { scope, amount, limit } of postings) {
    if (limit === undefined) continue;
    const used = sumOf(scope);
    const resource = exceeded(limit, used, amount);
    if (resource !== undefined)
      return { scope, resource, limit: limit[resource]!, used: used[resource] ?? 0 };
  }
  return undefined;
}

/** A ledger that was behind is set right by the audit; below nothing it cannot be. */
function atLeastNothing(sum: Resources): Resources {
  return Object.fromEntries(Object.entries(sum).map(([name, amount]) => [name, Math.max(0, amount)]));
}
