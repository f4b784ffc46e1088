import { add, type Resources } from "@nodeyard/driver";
import type { State } from "./state.ts";
import type { LocalPool } from "./types.ts";

/** Under these keys counts what may be of any pool, and what may be of any tenant. */
export const ANYWHERE = "anywhere";
export const ANYBODY = "anybody";

export function usedOfPool(state: State, { key, provider }: LocalPool): Resources {
  return together(state, `pool ${key}`, `pools of ${provider}`, ANYWHERE);
}

export function usedOfProvider(state: State, provider: string): Resources {
  return together(state, `provider ${provider}`, ANYWHERE);
}

export function usedOfTenant(state: State, tenant: string): Resources {
  return together(state, `tenant ${tenant}`, ANYBODY);
}

/** For verdicts: why more is used than a listing of nodes shows. */
export function unreadableFacts({ unreadable }: State): { readonly unreadable?: number } {
  return unreadable.nodes.size === 0 ? {} : { unreadable: unreadable.nodes.size };
}

function together(state: State, key: string, ...wider: readonly string[]): Resources {
  const sum = state.usage.of(key);
  if (state.unreadable.nodes.size === 0) return sum;
  return wider.reduce((all, other) => add(all, state.usage.of(other)), sum);
}
