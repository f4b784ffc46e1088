import { clientOf, MIN_READY, priceOf } from "@nodeyard/model";
import { compareText } from "@nodeyard/runtime";
import { levelOf } from "./spending.ts";
import type { State } from "./state.ts";

/** What a tenant, or a client within a tenant, has and waits for, by what the scheduler decides by. */
export interface TenantUse {
  /** Null: of requests without a tenant. */
  readonly tenant: string | null;
  /** Null: of all clients of the tenant together. */
  readonly client: string | null;
  /** Nodes of all pools and launchers that are allocated to its requests. */
  readonly nodes: number;
  /** Its requests that are not accepted. */
  readonly waiting: number;
  /** Null: requests are served by age. */
  readonly weight: number | null;
  /** What its nodes cost, by currency, as far as it is known. */
  readonly perHour: Readonly<Record<string, number>>;
  /** Null: it has none; clients never have. */
  readonly budget: {
    readonly amount: number;
    readonly currency: string;
    readonly spent: number;
    /** Nodes of the month that cost nothing, because their price is not known. */
    readonly unpriced: number;
    readonly level: "free" | "near" | "used";
    /** As "2026-12"; the next one begins at `until`, milliseconds since the epoch. */
    readonly month: string;
    readonly until: number;
  } | null;
}

/**
 * Every tenant that has a node, a waiting request, a weight or a budget, each followed by its clients where `clients` says so. Reads all nodes and
 * requests.
 */
export function tenantUses(state: State, clients: boolean): readonly TenantUse[] {
  const { shares, budgets = new Map() } = state.policy;
  const sums = new Map<
    string,
    { nodes: number; waiting: number; readonly perHour: Record<string, number> }
  >();
  const keys = new Map<string, readonly [string, string | null]>();
  const at = (tenant: string, client: string | null) => {
    const key = JSON.stringify([tenant, client]);
    keys.set(key, [tenant, client]);
    const sum = sums.get(key) ?? { nodes: 0, waiting: 0, perHour: {} };
    sums.set(key, sum);
    return sum;
  };
  const both = (tenant: string | null, client: string | null) => [
    at(tenant ?? "", null),
    ...(clients ? [at(tenant ?? "", client ?? "")] : []),
  ];
  for (const tenant of [...(shares?.tenants.keys() ?? []), ...budgets.keys()]) at(tenant, null);
  for (const { record } of state.nodes.values()) {
    const { allocatedTo, tenantName, requestor, userData } = record;
    if (allocatedTo === null || requestor === MIN_READY) continue;
    const price = priceOf(record);
    for (const sum of both(tenantName, clientOf(requestor, userData))) {
      sum.nodes++;
      if (price !== undefined)
        sum.perHour[price.currency] = (sum.perHour[price.currency] ?? 0) + price.perHour;
    }
  }
  for (const { record } of state.requests.entries()) {
    const { tenantName, requestor, requestorData } = record;
    if (record.state !== "requested" || requestor === MIN_READY) continue;
    for (const sum of both(tenantName, clientOf(requestor, requestorData))) sum.waiting++;
  }
  return [...sums]
    .map(([key, sum]): TenantUse => {
      const [tenant, client] = keys.get(key)!;
      const weights = client === null ? shares?.tenants : shares?.clients;
      const weight = weights === undefined ? null : (weights.get(client ?? tenant) ?? 1);
      const budget = client === null ? budgetOf(state, tenant) : null;
      return { tenant: tenant === "" ? null : tenant, client, ...sum, weight, budget };
    })
    .sort(
      (a, b) =>
        compareText(a.tenant ?? "", b.tenant ?? "") ||
        Number(a.client !== null) - Number(b.client !== null) ||
        compareText(a.client ?? "", b.client ?? ""),
    );
}

function budgetOf({ spending }: State, tenant: string): TenantUse["budget"] {
  const use = spending.useOf(tenant);
  if (use === undefined) return null;
  const { amount, currency, spent, unpriced, month } = use;
  const level = levelOf(use);
  return { amount, currency, spent, unpriced, level, month: month.name, until: month.until };
}
