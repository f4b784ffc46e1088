import { add, type Resources } from "@nodeyard/driver";
import type { NodeRecord } from "@nodeyard/model";
import { messageOf } from "@nodeyard/runtime";
import type { Budget } from "@nodeyard/scheduler";
import { CommitFailed, type Op, type OpResult, TreeError, treeNow } from "@nodeyard/tree";
import type { Handles } from "../handles.ts";
import { Count, countRecords, nodeIds } from "./count.ts";
import { measureDrift } from "./drift.ts";
import { isGiven, type ScopeKey, scopeOf, shiftsOf } from "./holdings.ts";
import { LedgerCache, LimitReached, type Posting } from "./ledger-cache.ts";
import { decodeLedger, type Ledger, ledgerPath, readLedger } from "./ledger-znode.ts";
import { chargeOf } from "./spending.ts";

type LedgerHandles = Pick<Handles, "tree" | "view" | "clock" | "random" | "log" | "ages">;

/** How long a ledger that was found right is not measured again for another refusal. */
const BELIEVED_MS = 1_000;

/**
 * Limits that several launchers share, exact among Nodeyard's (rule 3): pools, clouds' quotas, tenants. A scope
 * without a limit has no ledger and costs nothing. What Python launchers do is only seen: a ledger that is off is corrected when it
 * refuses what the view has room for, and by `audit`. While a node cannot be read that may count for a scope, its ledger is set no
 * lower: the node was counted when its record was made.
 */
export class Ledgers {
  readonly #handles: LedgerHandles;
  /** The finite limits of each scope that has some; what is not here is not counted. */
  readonly #limits = new Map<ScopeKey, Resources>();
  #budgets: ReadonlyMap<string, Budget> = new Map();
  /** When a ledger was last found to say what exists, monotonic ms. */
  readonly #right = new Map<ScopeKey, number>();
  /** Corrections under way by scope, so that many refusals of one moment cause one. */
  readonly #repairing = new Map<ScopeKey, Promise<ReadonlySet<ScopeKey>>>();
  readonly #cache: LedgerCache;

  constructor(handles: LedgerHandles) {
    this.#handles = handles;
    this.#cache = new LedgerCache(handles.tree, handles, (scopes) => this.#read(scopes));
  }

  /** Sets the limits of a pool; without a finite one no ledger is kept. */
  setPool(key: string, limits: Resources): void {
    this.#set(scopeOf.pool(key), limits);
  }

  /** Sets the amounts that a provider can give: its quota less what others use. */
  setProvider(name: string, quota: Resources): void {
    this.#set(scopeOf.provider(name), quota);
  }

  /** Replaces the limits and budgets of all tenants. A change holds from the next commit on; nothing is taken back. */
  setTenants(limits: ReadonlyMap<string, Resources>, budgets: ReadonlyMap<string, Budget> = new Map()): void {
    this.#budgets = budgets;
    for (const scope of this.#limits.keys()) {
      const tenant = scopeOf.tenant("");
      if (scope.startsWith(tenant) && !limits.has(scope.slice(tenant.length))) this.#limits.delete(scope);
    }
    for (const [tenant, limit] of limits) this.#set(scopeOf.tenant(tenant), limit);
  }

  /**
   * Carries out a commit that takes a node record from `before` to `after` (undefined: it is not there), counted. Undefined when no
   * limit counts the change: the caller then commits by itself. `ignoresQuota`: what the cloud lets us have is no limit to it. Rejects with
   * LimitReached when it gives a node to a request of which there may be no more.
   */
  counted(
    before: NodeRecord | undefined,
    after: NodeRecord | undefined,
    ops: readonly Op[],
    ignoresQuota = true,
  ): Promise<readonly OpResult[]> | undefined {
    const postings = this.#postings(before, after, ignoresQuota);
    return postings.length > 0 ? this.#commit(postings, ops) : undefined;
  }

  /** Compares each ledger with the view and corrects wrong sums. Call it at each resync. */
  async audit(): Promise<void> {
    const { tree, view } = this.#handles;
    if (!view.complete || this.#limits.size === 0) return;
    const found = await Promise.all(
      [...this.#limits.keys()].map(async (scope) => {
        const data = (await tree.get(ledgerPath(scope)).catch(() => undefined))?.data;
        return { scope, sum: data === undefined ? undefined : decodeLedger(data, []) };
      }),
    );
    const count = this.#seen();
    const off = found.flatMap(({ scope, sum }) =>
      sum === undefined || same(sum, count.rightFor(sum, scope), this.#names(scope)) ? [] : [scope],
    );
    // The view may be behind the tree, so differences are measured again in the tree.
    if (off.length > 0) await this.#repair(off);
  }

  /** Sets the limits of a scope, or stops counting for it. */
  #set(scope: ScopeKey, limits: Resources): void {
    const finite = Object.entries(limits).filter(([, limit]) => Number.isFinite(limit));
    if (finite.length > 0) this.#limits.set(scope, Object.fromEntries(finite));
    else this.#limits.delete(scope);
  }

  /** What the view says that is taken. */
  #seen(): Count {
    const { nodes, unreadable } = this.#handles.view;
    return new Count(
      [...nodes.byId.values()].map(({ record }) => record),
      [...unreadable.nodes.values()].map(({ known }) => known),
    );
  }

  /** The resources that are limited, and so must be in the ledger. */
  #names(scope: ScopeKey): readonly string[] {
    return Object.keys(this.#limits.get(scope) ?? {});
  }

  /** The parts of a commit that concern ledgers. Empty where no scope with a limit is touched: then the commit needs no ledger. */
  #postings(
    before: NodeRecord | undefined,
    after: NodeRecord | undefined,
    ignoresQuota: boolean,
  ): readonly Posting[] {
    const charge =
      this.#budgets.size === 0
        ? undefined
        : chargeOf(before, after, this.#budgets, {
            believed: this.#handles.ages.now(),
            written: treeNow(this.#handles),
          });
    if (this.#limits.size === 0) return charge === undefined ? none : [charge];
    const given = isGiven(before, after);
    const postings: Posting[] = charge === undefined ? [] : [charge];
    for (const { scope, amount } of shiftsOf(before, after)) {
      const limit = this.#limits.get(scope);
      if (limit === undefined) continue;
      const free = !given || (ignoresQuota && scope.startsWith("provider "));
      postings.push({ scope, amount, limit: free ? undefined : limit });
    }
    return postings;
  }

  /** Reads ledgers; missing ones are made from one count of all records. */
  async #read(scopes: readonly ScopeKey[]): Promise<readonly Ledger[]> {
    const { tree } = this.#handles;
    let counted: Promise<Count> | undefined;
    const all = async () => countRecords(tree, await nodeIds(tree));
    const count = (alone: boolean) => {
      if (alone) return all();
      counted ??= all();
      return counted;
    };
    return Promise.all(
      scopes.map((scope) =>
        readLedger(tree, scope, this.#names(scope), async (alone) => {
          // What is over stands in no record.
          if (scope.startsWith("spending ")) return {};
          const now = await count(alone);
          return add(now.least(scope), now.more(scope) ?? {});
        }),
      ),
    );
  }

  /** Commits; a refusal is believed only when the view agrees, or when the ledger was found to be right. */
  async #commit(postings: readonly Posting[], ops: readonly Op[]): Promise<readonly OpResult[]> {
    try {
      return await this.#cache.commit(postings, ops);
    } catch (error) {
      if (!(error instanceof LimitReached) || !(await this.#freed(error))) throw error;
      return this.#cache.commit(postings, ops);
    }
  }

  /** Whether the ledger that refused counted more than the records have, and was corrected. */
  async #freed({ scope, resource, used }: LimitReached): Promise<boolean> {
    const { tree, clock } = this.#handles;
    const wanted = { [resource]: used };
    const overcounts = () => (this.#seen().rightFor(wanted, scope)[resource] ?? 0) < used;
    if (!overcounts()) return false;
    const found = this.#right.get(scope);
    if (found !== undefined && clock.monotonic() - found < BELIEVED_MS) return false;
    // The view may be behind. Events come before the answer of a sync, and the reads that they cause before that of a later read.
    await tree.sync(ledgerPath(scope));
    await tree.stat(ledgerPath(scope));
    if (!overcounts()) return false;
    let repair = this.#repairing.get(scope);
    if (repair === undefined) {
      repair = this.#repair([scope]).finally(() => this.#repairing.delete(scope));
      this.#repairing.set(scope, repair);
    }
    return (await repair).has(scope);
  }

  /** Corrects the wrong ledgers among `scopes` and returns their scopes. */
  async #repair(scopes: readonly ScopeKey[]): Promise<ReadonlySet<ScopeKey>> {
    const { tree, view, clock, log } = this.#handles;
    try {
      const { amounts, fence } = await measureDrift(tree, scopes, view.nodes.byId.keys());
      for (const scope of scopes) if (!amounts.has(scope)) this.#right.set(scope, clock.monotonic());
      if (amounts.size === 0) return new Set();
      const postings = [...amounts].map(([scope, amount]) => ({ scope, amount, limit: undefined }));
      await this.#cache.commit(postings, [fence]);
      log.warn(
        { corrected: Object.fromEntries(amounts) },
        "corrected ledgers that disagreed with the records",
      );
      return new Set(amounts.keys());
    } catch (error) {
      if (!(error instanceof TreeError)) throw error;
      // Another launcher may have corrected them first.
      const { code } = error instanceof CommitFailed ? error.reason : error;
      if (code === "tree.bad_version") return new Set(scopes);
      log.warn({ scopes, error: messageOf(error) }, "cannot correct ledgers; the next sweep will retry");
      return new Set();
    }
  }
}

const none: readonly Posting[] = [];

function same(a: Resources, b: Resources, names: readonly string[]): boolean {
  return names.every((name) => (a[name] ?? 0) === (b[name] ?? 0));
}
