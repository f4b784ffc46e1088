import { borneSince, costBetween, type NodeRecord, priceOf, spendingAt } from "@nodeyard/model";
import { type Budget, monthAt, type SchedulerEvent } from "@nodeyard/scheduler";
import { orUndefined, TreeError } from "@nodeyard/tree";
import type { OwnEntry } from "@nodeyard/view";
import type { Handles } from "../handles.ts";
import { scopeOf } from "./holdings.ts";
import type { Posting } from "./ledger-cache.ts";
import { decodeLedger } from "./ledger-znode.ts";

/** Ledgers of months that ended so long ago are deleted, milliseconds: until then the last month can be read. */
const KEPT_MS = 62 * 86_400_000;

/**
 * What a tenant with a budget has to bear when a write takes a node from its request: in the same commit, so that each node counts once,
 * whatever crashes. Undefined: the write takes none. `at`: tree time as it is believed, and as records are written now, milliseconds; while
 * they differ a clock has jumped, nobody knows which is right, and it is charged by the one that makes it less.
 */
export function chargeOf(
  before: NodeRecord | undefined,
  after: NodeRecord | undefined,
  budgets: ReadonlyMap<string, Budget>,
  { believed, written }: { readonly believed: number; readonly written: number },
): Posting | undefined {
  if (before === undefined || before.allocatedTo === null || before.tenantName === null) return undefined;
  if (after?.allocatedTo === before.allocatedTo && after.tenantName === before.tenantName) return undefined;
  const budget = budgets.get(before.tenantName);
  if (budget === undefined) return undefined;
  const { name, from } = monthAt(believed, budget.timezone);
  const scope = scopeOf.spending(name, before.tenantName);
  const price = priceOf(before);
  if (price?.currency !== budget.currency)
    return { scope, amount: { instances: 1, unpriced: 1 }, limit: undefined };
  // What it cost in earlier months is theirs.
  const since = Math.max(borneSince(before) ?? believed, from);
  const cost = costBetween(price, since, Math.min(believed, written));
  return { scope, amount: { instances: 1, [budget.currency]: cost }, limit: undefined };
}

/** The scheduler's event for a record of the view; undefined: it is no ledger of a month. */
export function spentEvent(
  path: string,
  entry: OwnEntry | undefined,
  { counters }: Pick<Handles, "counters">,
): SchedulerEvent | undefined {
  const at = spendingAt(path);
  if (at === undefined) return undefined;
  const ledger = entry && decodeLedger(entry.data, []);
  if (entry !== undefined && ledger === undefined)
    counters.add("view.records_skipped", 1, { kind: "spending", code: "record.bad_field" });
  if (ledger === undefined) return { type: "spent", ...at };
  const { instances: nodes = 0, unpriced = 0, ...amounts } = ledger;
  return { type: "spent", ...at, after: { month: at.month, nodes, amounts, unpriced } };
}

/** Deletes ledgers of past months, of tenants without a budget, too. Any launcher does it, and the next sweep what fails now. */
export async function sweepSpending({
  tree,
  view,
  ages,
}: Pick<Handles, "tree" | "view" | "ages">): Promise<void> {
  const oldest = new Date(ages.now() - KEPT_MS).toISOString().slice(0, 7);
  for (const path of view.own.keys()) {
    const month = spendingAt(path)?.month;
    if (month === undefined || month > oldest || !ages.trusted) continue;
    await orUndefined(tree.delete(path)).catch((error: unknown) => {
      if (!(error instanceof TreeError)) throw error;
    });
  }
}
