import { add, type Resources } from "@nodeyard/driver";
import {
  decodeNode,
  type NodeFields,
  type NodeRecord,
  paths,
  RecordError,
  readableNode,
} from "@nodeyard/model";
import { type Clock, messageOf, type Random } from "@nodeyard/runtime";
import { type CreateOp, type Op, type OpResult, type Tree, TreeError } from "@nodeyard/tree";
import type { Log } from "../../telemetry/index.ts";
import type { View } from "../../view/index.ts";
import { Count } from "./count.ts";
import { isGiven, type ScopeKey, scopeOf, shiftsOf } from "./holdings.ts";
import { LedgerBook, type Posting } from "./ledger-book.ts";
import { decodeLedger, encodeLedger, type Ledger, ledgerPath, readLedger } from "./ledger-znode.ts";

export interface LedgerHandles {
  readonly tree: Tree;
  readonly view: View;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/**
 * Limits that several launchers share, exact among Nodeyard's (design, rule 3): pools, clouds' quotas, tenants. A scope
 * without a limit has no ledger and costs nothing. What Python launchers do is only seen: `audit` sets a ledger right when
 * it was off twice in a row. While a node cannot be read that may count for a scope, its ledger is set no lower: the node was counted
 * when its record was made.
 */
export class Ledgers {
  readonly #handles: LedgerHandles;
  readonly #limits = new Map<ScopeKey, Resources>();
  readonly #off = new Set<ScopeKey>();
  readonly #book: LedgerBook;

  constructor(handles: LedgerHandles) {
    this.#handles = handles;
    this.#book = new LedgerBook(handles.tree, handles, (scopes) => this.#read(scopes));
  }

  /** Sets the limits of a pool; without a finite one no ledger is kept. */
  setPool(key: string, limits: Resources): void {
    this.#set(scopeOf.pool(key), limits);
  }

  /** Sets what a provider's cloud lets us have: its quota less what others use. */
  setProvider(name: string, quota: Resources): void {
    this.#set(scopeOf.provider(name), quota);
  }

  setTenants(limits: ReadonlyMap<string, Resources>): void {
    for (const scope of this.#limits.keys()) {
      const tenant = scopeOf.tenant("");
      if (scope.startsWith(tenant) && !limits.has(scope.slice(tenant.length))) this.#limits.delete(scope);
    }
    for (const [tenant, limit] of limits) this.#set(scopeOf.tenant(tenant), limit);
  }

  /**
   * Creates a node record, counted. `ignoresQuota`: what the cloud lets us have is no limit to it. Rejects with LimitReached.
   * Returns the path.
   */
  async create(record: NodeRecord, create: CreateOp, ignoresQuota: boolean): Promise<string> {
    const postings = this.#postings(undefined, record, ignoresQuota);
    if (postings.length === 0) {
      return (await this.#handles.tree.create(create.path, create.data, { sequential: true })).path;
    }
    const [result] = await this.#book.commit(postings, [create]);
    return (result as Extract<OpResult, { op: "create" }>).path;
  }

  /**
   * Carries out a commit that takes a node record from `before` to `after` (undefined: it goes), counted. Rejects with
   * LimitReached when it gives the node to a request of which the tenant may have no more.
   */
  async change(before: NodeRecord, after: NodeRecord | undefined, ops: readonly Op[]): Promise<void> {
    const postings = this.#postings(before, after, true);
    if (postings.length > 0) await this.#book.commit(postings, ops);
    else await this.#handles.tree.commit(ops);
  }

  /** Compares every ledger with the view; one that is off twice in a row is counted anew. To be called at each resync. */
  async audit(): Promise<void> {
    const { tree, view } = this.#handles;
    if (!view.complete || this.#limits.size === 0) return;
    const found = await Promise.all(
      [...this.#limits.keys()].map(async (scope) => {
        const data = (await tree.get(ledgerPath(scope)).catch(() => undefined))?.data;
        return { scope, sum: data === undefined ? undefined : decodeLedger(data, []) };
      }),
    );
    // After the reads: what the view lacks then is put right by the second look.
    const count = new Count(
      [...view.nodes.byId.values()].map(({ record }) => record),
      [...view.unreadable.nodes.values()].map(({ known }) => known),
    );
    const twice: ScopeKey[] = [];
    for (const { scope, sum } of found) {
      const off = sum !== undefined && !same(sum, rightFor(sum, count, scope), this.#names(scope));
      if (off && this.#off.delete(scope)) twice.push(scope);
      else if (off) this.#off.add(scope);
      else this.#off.delete(scope);
    }
    for (const scope of twice) await this.#recount(scope);
  }

  #set(scope: ScopeKey, limits: Resources): void {
    const finite = Object.entries(limits).filter(([, limit]) => Number.isFinite(limit));
    if (finite.length > 0) this.#limits.set(scope, Object.fromEntries(finite));
    else this.#limits.delete(scope);
  }

  #names(scope: ScopeKey): readonly string[] {
    return Object.keys(this.#limits.get(scope) ?? {});
  }

  #postings(
    before: NodeRecord | undefined,
    after: NodeRecord | undefined,
    ignoresQuota: boolean,
  ): readonly Posting[] {
    if (this.#limits.size === 0) return none;
    const given = isGiven(before, after);
    const postings: Posting[] = [];
    for (const { scope, amount } of shiftsOf(before, after)) {
      const limit = this.#limits.get(scope);
      if (limit === undefined) continue;
      const free = !given || (ignoresQuota && scope.startsWith("provider "));
      postings.push({ scope, amount, limit: free ? undefined : limit });
    }
    return postings;
  }

  /** Those that are missing are made of one look at all records. */
  async #read(scopes: readonly ScopeKey[]): Promise<readonly Ledger[]> {
    const { tree } = this.#handles;
    let counted: Promise<Count> | undefined;
    const count = (alone: boolean) => {
      if (alone) return countRecords(tree);
      counted ??= countRecords(tree);
      return counted;
    };
    return Promise.all(
      scopes.map((scope) =>
        readLedger(tree, scope, this.#names(scope), async (alone) => {
          const now = await count(alone);
          return add(now.least(scope), now.more(scope) ?? {});
        }),
      ),
    );
  }

  /** Exact: the set is refused when any Nodeyard launcher wrote the ledger since it was read. */
  async #recount(scope: ScopeKey): Promise<void> {
    const { tree, log } = this.#handles;
    try {
      const path = ledgerPath(scope);
      const { stat, data } = await tree.get(path);
      const before = decodeLedger(data, []);
      const sum = rightFor(before ?? {}, await countRecords(tree), scope);
      if (before !== undefined && same(before, sum, this.#names(scope))) return;
      await tree.set(path, encodeLedger(sum), { version: stat.version });
      this.#book.forget(scope);
      log.warn({ scope, before, now: sum }, "a ledger was off and is set to what exists");
    } catch (error) {
      if (error instanceof TreeError && error.code === "tree.bad_version") return;
      log.warn(
        { scope, error: messageOf(error) },
        "could not set a ledger right; the next sweep tries again",
      );
    }
  }
}

const none: readonly Posting[] = [];

function same(a: Resources, b: Resources, names: readonly string[]): boolean {
  return names.every((name) => (a[name] ?? 0) === (b[name] ?? 0));
}

/** What a ledger should say that says `sum`. */
function rightFor(sum: Resources, count: Count, scope: ScopeKey): Resources {
  const least = count.least(scope);
  if (count.more(scope) === undefined) return least;
  const names = [...Object.keys(sum), ...Object.keys(least)];
  return Object.fromEntries(names.map((name) => [name, Math.max(sum[name] ?? 0, least[name] ?? 0)]));
}

/** What all records take, read from the tree itself: the view may be behind. */
async function countRecords(tree: Tree): Promise<Count> {
  const ids = await tree.children(paths.nodes).catch((error: unknown): readonly string[] => {
    if (error instanceof TreeError && error.code === "tree.no_node") return [];
    throw error;
  });
  const records: NodeRecord[] = [];
  const unreadable: Partial<NodeFields>[] = [];
  await Promise.all(
    ids.map(async (id) => {
      const found = await tree.get(paths.node(id)).catch(undefinedWhenMissing);
      // A path that never had data is left by a locker that came too late.
      if (found === undefined || (found.data.length === 0 && found.stat.version === 0)) return;
      try {
        records.push(decodeNode(id, found.data));
      } catch (error) {
        if (!(error instanceof RecordError)) throw error;
        unreadable.push(readableNode(found.data));
      }
    }),
  );
  return new Count(records, unreadable);
}

function undefinedWhenMissing(error: unknown): undefined {
  if (!(error instanceof TreeError) || error.code !== "tree.no_node") throw error;
}
