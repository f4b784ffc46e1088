import { roundAmount } from "@nodeyard/model";
import { type BudgetUse, levelOf, NEAR } from "./spending.ts";
import type { State, Turn } from "./state.ts";
import { recheckAll } from "./waiting.ts";
import type { Waiting } from "./waits.ts";

const HOUR_MS = 3_600_000;

/** The tenant of the request has used up its budget of this month. */
export interface OverBudget {
  readonly kind: "budget";
  readonly facts: Readonly<Record<string, unknown>>;
  /** When the next month begins, tree time, milliseconds. */
  readonly until: number;
}

/** Whether nodes may be given to a request; undefined: they may. Nodes that a tenant has it keeps, whatever they come to cost. */
export function overBudget(state: State, { record }: Waiting): OverBudget | undefined {
  const { tenantName } = record;
  const use = tenantName === null ? undefined : state.spending.useOf(tenantName);
  if (tenantName === null || use === undefined || levelOf(use) !== "used") return undefined;
  return { kind: "budget", facts: factsOf(tenantName, use), until: use.month.until };
}

/** For verdicts, events and lists. */
export function factsOf(tenant: string, use: BudgetUse): Readonly<Record<string, unknown>> {
  const { amount, currency, month, spent, perHour, unpriced } = use;
  return {
    tenant,
    spent: roundAmount(spent),
    budget: amount,
    currency,
    per_hour: roundAmount(perHour),
    begins_anew: new Date(month.until).toISOString(),
    ...(unpriced > 0 && { unpriced }),
  };
}

/**
 * Looks how much of a budget is used: when a node of the tenant or its ledger changes, at each sweep, and when it will have passed the
 * next level if nothing changes.
 */
export function lookAtBudget(state: State, turn: Turn, tenant: string): void {
  const use = state.spending.useOf(tenant);
  if (use === undefined) {
    state.budgetLevels.delete(tenant);
    return state.timers.delete("budget", tenant);
  }
  const level = levelOf(use);
  const before = state.budgetLevels.get(tenant) ?? "free";
  state.budgetLevels.set(tenant, level);
  const next = { free: NEAR * use.amount, near: use.amount, used: Number.POSITIVE_INFINITY }[level];
  // Never where nothing that has a price runs: the division by 0 is infinite.
  const ms = Math.ceil(((next - use.spent) / use.perHour) * HOUR_MS);
  const due = Math.min((use.settles ?? use.month.until) - turn.now, use.month.until - turn.now, ms);
  state.timers.set("budget", tenant, turn.steady + Math.max(1, due));
  if (level !== "used") recheckAll(state, "budget", tenant);
  if (level === before) return;
  // Those that wait for something else keep hosts and places from others, which they may not use now.
  if (level === "used")
    for (const { id, record } of state.requests.waiting())
      if (record.tenantName === tenant) state.todo.requests.add(id);
  turn.actions.push({ type: "budget-changed", tenant, level, facts: factsOf(tenant, use) });
}
