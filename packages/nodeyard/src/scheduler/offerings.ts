import { labelKey, mayTry, type Offering, type OfferingFact, offeringKey } from "./offering.ts";
import type { RegisteredPool } from "./registry.ts";
import { MIN_READY } from "./requests.ts";
import type { PoolState, State, Turn } from "./state.ts";
import type { LocalPool, VerdictCode } from "./types.ts";
import { parkForLabel, recheckAll, recheckFirst } from "./waiting.ts";
import type { Waiting } from "./waits.ts";

/** While somebody waits for an offering that may be tried, it is looked at again this often, milliseconds. */
const LOOK_AGAIN_MS = 5_000;

/** Why nothing of a label can be launched in a pool now. */
export interface Closed {
  readonly key: string;
  readonly label: string;
  readonly code: VerdictCode;
  readonly facts: Readonly<Record<string, unknown>>;
  /** Steady milliseconds. */
  readonly nextTry: number | undefined;
  /** Given when waiting is of no use. */
  readonly decline: string | undefined;
}

export function offeringOf(pool: LocalPool, label: string, az: string | null): Offering {
  return { provider: pool.provider, az, type: pool.types?.get(label) ?? label };
}

/** Zones in which this request may launch all these labels now; `[null]` where the pool has no zones. */
export function openZones(
  state: State,
  pool: LocalPool,
  labels: readonly string[],
  request: string,
): readonly (string | null)[] {
  if (state.offerings.closed.size === 0) return zonesOf(pool);
  return zonesOf(pool).filter((az) =>
    labels.every((label) => closedIn(state, pool, label, request, az) === undefined),
  );
}

/** Why there is no open zone: what comes back first. Undefined when there is one. */
export function closedFor(
  state: State,
  pool: LocalPool,
  labels: readonly string[],
  request: string,
): Closed | undefined {
  if (openZones(state, pool, labels, request).length > 0) return undefined;
  const closed = zonesOf(pool).flatMap((az) => {
    const first = labels
      .map((label) => closedIn(state, pool, label, request, az))
      .find((each) => each !== undefined);
    return first === undefined ? [] : [first];
  });
  const [soonest] = closed.sort((a, b) => (a.nextTry ?? 0) - (b.nextTry ?? 0));
  // Some zone may come back: then waiting is of use.
  return closed.find(({ decline }) => decline === undefined) ?? soonest;
}

/** Whether a pool, of whatever launcher, can launch for the request as far as is known here. */
export function maySoon(state: State, other: RegisteredPool, waiting: Waiting): boolean {
  if (state.offerings.closed.size === 0) return true;
  const pools = [...state.pools.values()].map(({ policy }) => policy);
  const alike =
    pools.find(({ id }) => id === other.id) ?? pools.find(({ provider }) => provider === other.provider);
  return alike === undefined || closedFor(state, alike, waiting.record.nodeTypes, waiting.id) === undefined;
}

function zonesOf({
  zones,
}: {
  readonly key: string;
  readonly zones?: readonly string[];
}): readonly (string | null)[] {
  return zones === undefined || zones.length === 0 ? [null] : zones;
}

/** The label's budget first: it holds in every place. */
function closedIn(
  state: State,
  pool: LocalPool,
  label: string,
  request: string,
  az: string | null,
): Closed | undefined {
  return keysOf(pool, label, az)
    .map((key) => closedBy(state, key, pool, label, request, az))
    .find((closed) => closed !== undefined);
}

function keysOf(pool: LocalPool, label: string, az: string | null): readonly string[] {
  return [labelKey(label), offeringKey(offeringOf(pool, label, az))];
}

function closedBy(
  { offerings }: State,
  key: string,
  pool: LocalPool,
  label: string,
  request: string,
  az: string | null,
): Closed | undefined {
  const found = offerings.closed.get(key);
  if (found === undefined) return undefined;
  const { fact, due } = found;
  const trying = fact.prober ?? offerings.trying.get(key);
  if (trying === request || (due && trying === undefined)) return undefined;
  const { until, kind, error, failures, since } = fact;
  const facts = { pool: pool.key, label, az, kind, error, failures, failing_since: since };
  if (trying !== undefined) {
    const code = "offering.trying";
    return { key, label, code, facts: { ...facts, request: trying }, nextTry: undefined, decline: undefined };
  }
  const decline = `${label} cannot be made in ${pool.provider}: ${failures} launches failed in a row since ${new Date(since).toISOString()}, the last one with: ${error}`;
  return {
    key,
    label,
    code: fact.why === "budget" ? "offering.budget" : "offering.failing",
    facts,
    nextTry: until,
    decline: fact.hopeless ? decline : undefined,
  };
}

/** A label for which min-ready asks nothing now: its offering fails in this pool. */
export function isClosed(state: State, pool: LocalPool, label: string): boolean {
  return openZones(state, pool, [label], MIN_READY).length === 0;
}

/** The request waits for an offering; an idle node of the label serves it as well. */
export function waitForOffering(
  state: State,
  turn: Turn,
  pool: PoolState,
  waiting: Waiting,
  closed: Closed,
): void {
  parkForLabel(state, pool, waiting, closed.label);
  state.waits.join("offering", closed.key, waiting);
  if (state.timers.get("offering", closed.key) === undefined)
    state.timers.set("offering", closed.key, closed.nextTry ?? turn.steady + LOOK_AGAIN_MS);
}

/** The request is about to launch of these: whoever comes after it waits for what it finds out. */
export function tries(
  state: State,
  pool: LocalPool,
  labels: readonly string[],
  az: string | null,
  request: string,
): void {
  if (state.offerings.closed.size === 0) return;
  for (const label of labels)
    for (const key of keysOf(pool, label, az))
      if (state.offerings.closed.has(key)) state.offerings.trying.set(key, request);
}

/** Its handler has ended. */
export function triedBy(state: State, request: string): void {
  for (const [key, id] of state.offerings.trying) if (id === request) state.offerings.trying.delete(key);
}

export function onOffering(state: State, turn: Turn, key: string, fact: OfferingFact | undefined): void {
  const { offerings, timers } = state;
  for (const label of state.policy.labels.keys()) state.todo.labels.add(label);
  // Pools that yield to one that cannot launch now need not.
  for (const { id } of state.waits.of("yield")) state.todo.requests.add(id);
  if (fact === undefined) {
    offerings.closed.delete(key);
    timers.delete("offering", key);
    return recheckAll(state, "offering", key);
  }
  const due = mayTry(fact, turn.steady);
  offerings.closed.set(key, { fact, due });
  if (!due) timers.set("offering", key, fact.until);
  else recheckFirst(state, "offering", key);
}

/** Its time has come: the first in line may try. */
export function onOfferingDue(state: State, turn: Turn, key: string): void {
  const found = state.offerings.closed.get(key);
  if (found === undefined) return recheckAll(state, "offering", key);
  found.due = mayTry(found.fact, turn.steady);
  for (const label of state.policy.labels.keys()) state.todo.labels.add(label);
  if (state.waits.line("offering", key).size === 0) return;
  recheckFirst(state, "offering", key);
  state.timers.set("offering", key, found.due ? turn.steady + LOOK_AGAIN_MS : found.fact.until);
}
