import { add, type Resources } from "@nodeyard/driver";
import type { LocalPool } from "./types.ts";

export const oneInstance: Resources = { instances: 1 };

/** What one node of a label takes in a pool; labels that the driver says nothing of take one instance. */
export function needOf(pool: LocalPool, label: string): Resources {
  return pool.needs.get(label) ?? oneInstance;
}

/** What all these labels take together. */
export function total(pool: LocalPool, labels: readonly string[]): Resources {
  return labels.reduce<Resources>((sum, label) => add(sum, needOf(pool, label)), {});
}

/** Number of times that each label is wanted. */
export function counted(labels: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  return counts;
}

/** What `count` nodes take. */
export function times(need: Resources, count: number): Resources {
  return Object.fromEntries(Object.entries(need).map(([name, amount]) => [name, amount * count]));
}

/** The least of each resource that any of these takes; undefined: there are none. */
export function leastOf(needs: readonly Resources[]): Resources | undefined {
  if (needs.length === 0) return undefined;
  const names = new Set(needs.flatMap((need) => Object.keys(need)));
  return Object.fromEntries(
    [...names].map((name) => [name, Math.min(...needs.map((need) => need[name] ?? 0))]),
  );
}
