import type { State, Turn } from "./state.ts";
import { dirtyProvider } from "./waiting.ts";

/** The first pause after a cloud refused for quota, milliseconds; it doubles with each refusal in a row. */
const FIRST_MS = 2_000;
const MOST_MS = 300_000;
/** How often the cloud is asked while somebody waits for its quota, milliseconds. */
const ASK_AGAIN_MS = 30_000;

/**
 * The cloud refused a launch for its quota. Nothing more is launched there for a while, then one request tries: a hundred
 * of them would only be refused a hundred times more (docs/contract/launcher.md, "Quota and limits").
 */
export function onQuotaRefused(state: State, turn: Turn, provider: string): void {
  const known = state.refusals.get(provider);
  // Launches that were under way at the same time say nothing new.
  if (known !== undefined && known.probe === undefined && turn.steady < known.until) return;
  const streak = (known?.streak ?? -1) + 1;
  const until = turn.steady + Math.min(MOST_MS, FIRST_MS * 2 ** streak);
  state.refusals.set(provider, { until, streak, probe: undefined });
  state.timers.set("refusal", provider, until);
}

/** Somebody waits for the quota of a provider: before long it is asked again, since others may have left. */
export function wantQuota(state: State, turn: Turn, provider: string): void {
  if (state.timers.get("quota", provider) === undefined)
    state.timers.set("quota", provider, turn.steady + ASK_AGAIN_MS);
}

/** Whether anybody still waits for it. */
export function isQuotaWanted(state: State, provider: string): boolean {
  if (state.waits.line("quota", provider).size > 0) return true;
  for (const { policy, blocked } of state.pools.values())
    if (policy.provider === provider && blocked?.scopes.has("provider")) return true;
  return false;
}

/** Why this request may not launch at the provider now; undefined: it may. */
export function isRefused(
  state: State,
  steady: number,
  provider: string,
  request: string,
): { readonly facts: Readonly<Record<string, unknown>>; readonly nextTry?: number } | undefined {
  const refusal = state.refusals.get(provider);
  if (refusal === undefined) return undefined;
  const { probe, until, streak } = refusal;
  const facts = { provider, refusals: streak + 1 };
  if (probe !== undefined) return probe === request ? undefined : { facts: { ...facts, tried_by: probe } };
  return steady < until ? { facts, nextTry: until } : undefined;
}

/** A request that launches there is about to find out. */
export function probeQuota(state: State, provider: string, request: string): void {
  const refusal = state.refusals.get(provider);
  if (refusal !== undefined) refusal.probe = request;
}

/** The handler of a request ended: if it tried and was not refused, the cloud has room again. */
export function probed(state: State, provider: string, request: string): void {
  if (state.refusals.get(provider)?.probe !== request) return;
  state.refusals.delete(provider);
  state.timers.delete("refusal", provider);
  dirtyProvider(state, provider);
}

/** A machine went, or the cloud gives more: whoever is first may try at once. */
export function quotaFreed(state: State, provider: string): void {
  const refusal = state.refusals.get(provider);
  if (refusal === undefined) return;
  refusal.until = Number.NEGATIVE_INFINITY;
  state.timers.delete("refusal", provider);
  dirtyProvider(state, provider);
}
