import type { Resources } from "@nodeyard/driver";
import type { SetOp, Tree } from "@nodeyard/tree";
import { countRecords, nodeIds } from "./count.ts";
import { difference, type ScopeKey } from "./holdings.ts";
import { decodeLedger, ledgerPath, REPAIRED, REPAIRS } from "./ledger-znode.ts";

/** How far ledgers are off, and what makes the correction happen once. */
export interface Drift {
  /** What to add to each ledger that is off; negative where it says more than the records take. */
  readonly amounts: ReadonlyMap<ScopeKey, Resources>;
  /** Makes a commit fail when a ledger was corrected after this measurement. */
  readonly fence: SetOp;
}

/** A ledger that moves during so many attempts is left for the next resync. */
const ATTEMPTS = 8;
/** Ids are sequential: so many that may be made before the reads arrive are read as well. */
const AHEAD = 16;
const ID_DIGITS = 10;

/**
 * Measures by how much ledgers differ from the records. Each commit of a Nodeyard launcher changes a ledger and the records by the same
 * amount. So the difference stays constant until a foreign process writes a record or a ledger is corrected, and it can be posted later
 * in spite of commits in between.
 *
 * A ledger and its records belong to one moment when the ledger has the same version before and after the records were read. All reads of
 * an attempt are sent together and the server answers them in order, so the ledger must be unchanged only for the time of these reads,
 * not for a round trip. Ledgers that change during all attempts are left out.
 */
export async function measureDrift(
  tree: Tree,
  scopes: readonly ScopeKey[],
  /** Ids of the records that there should be, so that they need not be listed first. */
  expected: Iterable<string>,
): Promise<Drift> {
  const ids = new Set<string>();
  expect(ids, expected);
  const amounts = new Map<ScopeKey, Resources>();
  let fence: SetOp | undefined;
  let open = scopes;
  for (let attempt = 0; attempt < ATTEMPTS && open.length > 0; attempt++) {
    // Calls are carried out in the order in which they are made.
    const [repairs, before, listed, count, after] = await Promise.all([
      tree.stat(REPAIRS),
      Promise.all(open.map((scope) => tree.get(ledgerPath(scope)).catch(() => undefined))),
      nodeIds(tree),
      countRecords(tree, ids),
      Promise.all(open.map((scope) => tree.stat(ledgerPath(scope)))),
    ]);
    // The oldest is the strictest.
    fence ??= { ...REPAIRED, version: repairs?.version ?? 0 };
    if (listed.some((id) => !ids.has(id))) {
      expect(ids, listed);
      continue;
    }
    const moved: ScopeKey[] = [];
    for (const [index, scope] of open.entries()) {
      const [from, to] = [before[index], after[index]];
      // No ledger: it is made right when it is first needed.
      if (from === undefined || to === undefined) continue;
      // The transaction of the last write; a version could repeat if the znode was deleted and made again.
      if (from.stat.mzxid !== to.mzxid) moved.push(scope);
      else {
        const recorded = decodeLedger(from.data, []);
        const amount = recorded === undefined ? {} : difference(count.rightFor(recorded, scope), recorded);
        if (Object.keys(amount).length > 0) amounts.set(scope, amount);
      }
    }
    open = moved;
  }
  return { amounts, fence: fence ?? REPAIRED };
}

/** Adds ids, and those that come next. */
function expect(ids: Set<string>, more: Iterable<string>): void {
  let last = -1;
  for (const id of more) {
    ids.add(id);
    last = Math.max(last, Number(id) || 0);
  }
  for (let next = last + 1; next <= last + AHEAD; next++) ids.add(String(next).padStart(ID_DIGITS, "0"));
}
