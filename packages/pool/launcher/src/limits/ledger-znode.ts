import type { Resources } from "@nodeyard/driver";
import { spendingPath } from "@nodeyard/model";
import { CommitFailed, ensurePath, ignoreExisting, type SetOp, type Tree, TreeError } from "@nodeyard/tree";
import { poolOf } from "@nodeyard/view";
import type { ScopeKey } from "./holdings.ts";

const ROOT = "/nodeyard/limits";
/**
 * Its version counts corrections: every write that changes a ledger and no record sets it, so that a correction that was measured before
 * another one is refused.
 */
export const REPAIRS = ROOT;
/** Version of the format, in the member `v`. */
const VERSION = 1;
/** Part of each such write. */
export const REPAIRED: SetOp = {
  op: "set",
  path: REPAIRS,
  data: Buffer.from(JSON.stringify({ v: VERSION })),
};

/** What a ledger says, and the version under which it may be changed. */
export interface Ledger {
  readonly sum: Resources;
  readonly version: number;
}

/** Where a scope's ledger is. `@` stands in no encoded name, so that no provider can pass for a kind. */
export function ledgerPath(scope: ScopeKey): string {
  const space = scope.indexOf(" ");
  const [kind, name] = [scope.slice(0, space), scope.slice(space + 1)];
  if (kind === "spending") return spendingPath(name.slice(0, 7), name.slice(8));
  if (kind !== "pool") return `${ROOT}/@${kind}/${encodeURIComponent(name)}`;
  return `${ROOT}/${poolOf(name).map(encodeURIComponent).join("/")}`;
}

/**
 * `whole` says that all resources are counted; the release before counted only `instances` and does not write it. Sums are clamped to
 * the range from zero to what JSON can hold: a reader would reject a sum outside and count the records again at each read.
 */
export function encodeLedger(sum: Resources): Uint8Array {
  const sound = Object.fromEntries(
    Object.entries(sum).map(([name, amount]) => [name, Math.min(Math.max(0, amount), Number.MAX_VALUE)]),
  );
  return Buffer.from(JSON.stringify({ v: VERSION, ...sound, instances: sound.instances ?? 0, whole: true }));
}

/** Undefined for data that is no ledger, or that lacks one of the resources; the caller then counts the records. */
export function decodeLedger(data: Uint8Array, names: readonly string[]): Resources | undefined {
  try {
    const { v: _, whole, ...amounts } = JSON.parse(Buffer.from(data).toString()) as Record<string, unknown>;
    if (whole !== true && names.some((name) => name !== "instances")) return undefined;
    const sound = Object.values(amounts).every(
      (amount) => Number.isFinite(amount) && (amount as number) >= 0,
    );
    return sound && typeof amounts.instances === "number" ? (amounts as Resources) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Reads a ledger. A missing or invalid one is made from the count of the records. The count is exact, because it is written only if no
 * Nodeyard launcher wrote the ledger in between.
 */
export async function readLedger(
  tree: Tree,
  scope: ScopeKey,
  names: readonly string[],
  /** `alone`: the count must begin after the ledger was read. Missing ledgers may share one count, because no launcher writes them yet. */
  count: (alone: boolean) => Promise<Resources>,
): Promise<Ledger> {
  const path = ledgerPath(scope);
  // What is spent is corrected by nobody: there are no records to count.
  const repaired = path.startsWith(ROOT) ? [REPAIRED] : [];
  for (;;) {
    try {
      const found = await tree.get(path);
      const sum = decodeLedger(found.data, names);
      if (sum !== undefined) return { sum, version: found.stat.version };
      const data = encodeLedger(await count(true));
      await tree.commit([{ op: "set", path, data, version: found.stat.version }, ...repaired]);
    } catch (error) {
      if (!(error instanceof TreeError)) throw error;
      const { code } = error instanceof CommitFailed ? error.reason : error;
      if (code === "tree.bad_version") continue;
      if (code !== "tree.no_node") throw error;
      await ensurePath(tree, path.slice(0, path.lastIndexOf("/")));
      const data = encodeLedger(await count(false));
      await tree.commit([{ op: "create", path, data }, ...repaired]).catch(ignoreExisting);
    }
  }
}
