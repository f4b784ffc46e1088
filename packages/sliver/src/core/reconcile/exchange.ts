import type { Resource } from "@nodeyard/sliver-protocol";
import type { SliverConfig } from "./config.ts";
import type { Observed } from "./observed.ts";

/** Which lendable resources a task gives back and gets more of, against what is applied now. */
export interface Exchange {
  readonly gives: readonly Resource[];
  readonly gets: readonly Resource[];
}

export const NOTHING: Exchange = { gives: [], gets: [] };

export function exchangeOf(
  found: Observed | undefined,
  { effective }: SliverConfig,
  lendable: readonly Resource[],
): Exchange {
  const before = found?.applied?.effective;
  return {
    gives: lendable.filter((name) => before !== undefined && effective[name] < before[name]),
    gets: lendable.filter((name) => effective[name] > (before?.[name] ?? 0)),
  };
}

/**
 * The incarnations that give back what this one gets more of: a lender's floor is restored, and a revoked loan is
 * applied, before anybody uses it. Whoever is not concerned waits for nobody. Of two that give and get both, neither
 * waits for the other.
 */
export function giversTo(
  exchange: Exchange,
  tasks: readonly { readonly incarnation: number; readonly exchange: Exchange }[],
): number[] {
  return tasks
    .filter((one) => rank(one.exchange) < rank(exchange))
    .filter((one) => one.exchange.gives.some((name) => exchange.gets.includes(name)))
    .map(({ incarnation }) => incarnation);
}

function rank({ gives, gets }: Exchange): number {
  if (gives.length === 0) return 2;
  return gets.length === 0 ? 0 : 1;
}
