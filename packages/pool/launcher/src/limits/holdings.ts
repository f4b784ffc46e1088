import { add, type Resources } from "@nodeyard/driver";
import type { NodeRecord } from "@nodeyard/model";
import { poolKey } from "@nodeyard/view";

/** What is counted for. One text each: `pool <provider>/<pool>`, `provider <name>`, `tenant <name>`, `spending <month>|<tenant>`. */
export type ScopeKey = string;

/** The scope keys of each kind. */
export const scopeOf = {
  pool: (key: string): ScopeKey => `pool ${key}`,
  provider: (name: string): ScopeKey => `provider ${name}`,
  tenant: (name: string): ScopeKey => `tenant ${name}`,
  /** No limit refuses it, and no record shows it: only what ends is added (limits/spending.ts). */
  spending: (month: string, tenant: string): ScopeKey => `spending ${month}|${tenant}`,
} as const;

/** The members of a record that decide what it takes. */
type Counted = Pick<NodeRecord, "provider" | "pool" | "tenantName" | "state" | "allocatedTo" | "resources">;

/** How much of each scope's limits a record takes, as long as it exists; as the scheduler counts (scheduler/nodes.ts). */
function holdingsOf(record: Counted): ReadonlyMap<ScopeKey, Resources> {
  const amount = { instances: 1, ...record.resources };
  const held = new Map<ScopeKey, Resources>([
    [scopeOf.pool(poolKey(record.provider, record.pool)), amount],
    [scopeOf.provider(record.provider ?? ""), amount],
  ]);
  // A deallocated node keeps the name of its last tenant in its record.
  if (record.tenantName !== null && record.allocatedTo !== null)
    held.set(scopeOf.tenant(record.tenantName), amount);
  return held;
}

/** One scope's part of a change; returned amounts are negative. */
interface Shift {
  readonly scope: ScopeKey;
  readonly amount: Resources;
}

/** What becomes different when a record goes from `before` to `after`; scopes of which nothing changes are left out. */
export function shiftsOf(before: Counted | undefined, after: Counted | undefined): readonly Shift[] {
  const [old, now] = [
    before === undefined ? nothing : holdingsOf(before),
    after === undefined ? nothing : holdingsOf(after),
  ];
  const shifts: Shift[] = [];
  for (const scope of new Set([...old.keys(), ...now.keys()])) {
    const amount = difference(now.get(scope) ?? {}, old.get(scope) ?? {});
    if (Object.keys(amount).length > 0) shifts.push({ scope, amount });
  }
  return shifts;
}

/** Only giving a node to a request may be refused. A deletion must always succeed, even above a limit. */
export function isGiven(before: Counted | undefined, after: Counted | undefined): boolean {
  return after !== undefined && after.allocatedTo !== null && before?.allocatedTo !== after.allocatedTo;
}

/** Sums of all scopes over records. */
export function sumsOf(records: Iterable<Counted>): ReadonlyMap<ScopeKey, Resources> {
  const sums = new Map<ScopeKey, Resources>();
  for (const record of records)
    for (const [scope, amount] of holdingsOf(record)) sums.set(scope, add(sums.get(scope) ?? {}, amount));
  return sums;
}

const nothing: ReadonlyMap<ScopeKey, Resources> = new Map();

/** The amounts to add to `old` to get `now`, without resources that do not change. */
export function difference(now: Resources, old: Resources): Resources {
  const rest: { [name: string]: number } = {};
  for (const name of new Set([...Object.keys(now), ...Object.keys(old)])) {
    const amount = (now[name] ?? 0) - (old[name] ?? 0);
    // One amount that is no number would make the sum none for ever, and the limit would hold no more.
    if (amount !== 0 && Number.isFinite(amount)) rest[name] = amount;
  }
  return rest;
}
