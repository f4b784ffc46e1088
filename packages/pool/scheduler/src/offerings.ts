import { labelKey, MIN_READY, offeringKey } from "@nodeyard/model";
import { type Candidate, candidatesOf, canEverFit, isTooDear, zonesOffered } from "./candidates.ts";
import { keysOf, stoppedBy, tries, waitForGate } from "./gates.ts";
import type { PoolState } from "./pool-state.ts";
import type { State, Turn } from "./state.ts";
import type { LocalPool, RegisteredPool, VerdictCode } from "./types.ts";
import { parkForLabel } from "./waiting.ts";
import type { Waiting } from "./waits.ts";

/** How often a request that waits for a lower price is planned again, milliseconds; it is when a price is read, too. */
const LOOK_AGAIN_MS = 300_000;

/** Why nothing of a label can be launched in a pool now. */
export interface ClosedOffering {
  /** Of its gate. */
  readonly key: string;
  readonly label: string;
  readonly code: VerdictCode;
  readonly facts: Readonly<Record<string, unknown>>;
  /** Steady milliseconds. */
  readonly nextTry: number | undefined;
  /** Given when waiting is of no use. */
  readonly decline: string | undefined;
}

/** The offering that opens first, and all that are closed: the request can continue as soon as one zone opens. */
export interface ClosedEverywhere extends ClosedOffering {
  /** One of each zone; of a label with several offerings each of them. */
  readonly zones: readonly ClosedOffering[];
}

/** Zones in which this request may launch all these labels now; `[null]` where the pool has no zones. */
export function openZones(
  state: State,
  steady: number,
  pool: LocalPool,
  labels: readonly string[],
  request: string,
): readonly (string | null)[] {
  const zones = zonesOf(pool, labels);
  // What an offering costs closes it, too.
  if (state.gates.closed.size === 0 && pool.offerings === undefined) return zones;
  return zones.filter((az) =>
    labels.every((label) => closedIn(state, steady, pool, label, request, az).length === 0),
  );
}

/** Why no zone is open, with the one that opens first; undefined when a zone is open. */
export function closedFor(
  state: State,
  steady: number,
  pool: LocalPool,
  labels: readonly string[],
  request: string,
): ClosedEverywhere | undefined {
  if (openZones(state, steady, pool, labels, request).length > 0) return undefined;
  const zones = zonesOf(pool, labels).flatMap(
    (az) =>
      labels
        .map((label) => closedIn(state, steady, pool, label, request, az))
        .find((each) => each.length > 0) ?? [],
  );
  return soonestOf(zones);
}

/**
 * Offerings that are closed, and with one of which these labels could be had: what a request waits for that fits no limit with those that
 * are open. Undefined: there is none.
 */
export function closedAmong(
  state: State,
  steady: number,
  pool: LocalPool,
  labels: readonly string[],
  { id, record }: Waiting,
): ClosedEverywhere | undefined {
  const closed = zonesOf(pool, labels).flatMap((az) =>
    [...new Set(labels)].flatMap((label) =>
      (candidatesOf(pool, label, az) ?? [])
        .filter((one) => canEverFit(state, pool, one, label, labels, record.tenantName))
        .flatMap((one) => closedOffering(state, steady, pool, label, id, one) ?? []),
    ),
  );
  return soonestOf(closed);
}

function soonestOf(closed: readonly ClosedOffering[]): ClosedEverywhere | undefined {
  const zones = closed.toSorted((a, b) => (a.nextTry ?? 0) - (b.nextTry ?? 0));
  // Waiting helps as long as one zone can open again.
  const soonest = zones.find(({ decline }) => decline === undefined) ?? zones[0];
  return soonest && { ...soonest, zones };
}

/** Whether a registered pool of any launcher can launch for the request, by the gates that this launcher knows. */
export function maySoon(state: State, steady: number, other: RegisteredPool, waiting: Waiting): boolean {
  if (state.gates.closed.size === 0 && ![...state.pools.values()].some(({ policy }) => policy.offerings))
    return true;
  const pools = [...state.pools.values()].map(({ policy }) => policy);
  const alike =
    pools.find(({ id }) => id === other.id) ?? pools.find(({ provider }) => provider === other.provider);
  return (
    alike === undefined || closedFor(state, steady, alike, waiting.record.nodeTypes, waiting.id) === undefined
  );
}

/** A label for which min-ready asks nothing now: its offering fails in this pool. */
export function isClosed(state: State, steady: number, pool: LocalPool, label: string): boolean {
  return openZones(state, steady, pool, [label], MIN_READY).length === 0;
}

/**
 * Zones in which all these labels are sold. A pool without zones is treated as one with a single zone that has no name, beside those that
 * offerings name.
 */
export function zonesOf(pool: LocalPool, labels: readonly string[]): readonly (string | null)[] {
  const zones = pool.zones.length === 0 ? [null, ...zonesOffered(pool, labels)] : pool.zones;
  if (pool.offerings === undefined) return zones;
  return zones.filter((az) => labels.every((label) => candidatesOf(pool, label, az)?.length !== 0));
}

/** The gates that a launch of the label passes in the zone; `type`: of its offering, where it has several. */
export function gatesOf(
  pool: LocalPool,
  label: string,
  az: string | null,
  type = pool.types?.get(label) ?? label,
): readonly string[] {
  return keysOf(label, offeringKey({ provider: pool.provider, az, type }));
}

/**
 * Why a label cannot be launched in a zone for this request; empty: it may launch there. A label with several offerings is closed when each
 * of them is.
 */
function closedIn(
  state: State,
  steady: number,
  pool: LocalPool,
  label: string,
  request: string,
  az: string | null,
): readonly ClosedOffering[] {
  const candidates = candidatesOf(pool, label, az);
  const closedBy = (keys: readonly string[]) => closedGate(state, steady, pool, label, request, az, keys);
  if (candidates === undefined) return closedBy(gatesOf(pool, label, az)) ?? [];
  const ofLabel = closedBy([labelKey(label)]);
  if (ofLabel !== undefined) return ofLabel;
  const all: ClosedOffering[] = [];
  for (const candidate of candidates) {
    const closed = closedOffering(state, steady, pool, label, request, candidate);
    if (closed === undefined) return [];
    all.push(closed);
  }
  return all;
}

/** Why one of several offerings is closed for the request; undefined: it is open. */
function closedOffering(
  state: State,
  steady: number,
  pool: LocalPool,
  label: string,
  request: string,
  { offering, az, key }: Candidate,
): ClosedOffering | undefined {
  if (!isTooDear(offering)) return closedGate(state, steady, pool, label, request, az, [key])?.[0];
  const { type, price, maxPrice } = offering;
  const facts = { pool: pool.key, label, az, type, price, max_price: maxPrice };
  const nextTry = steady + LOOK_AGAIN_MS;
  return { key, label, code: "offering.price", facts, nextTry, decline: undefined };
}

/** The first of these gates that is closed for the request, with what `explain` says; undefined: all are open. */
function closedGate(
  state: State,
  steady: number,
  pool: LocalPool,
  label: string,
  request: string,
  az: string | null,
  keys: readonly string[],
): readonly [ClosedOffering] | undefined {
  for (const key of keys) {
    const stop = stoppedBy(state, steady, key, request);
    if (stop === undefined) continue;
    const { code, until, kind, error, failures, since, hopeless } = stop.closed;
    const facts = { pool: pool.key, label, az, kind, error, failures, failing_since: since };
    const { trying } = stop;
    if (trying !== undefined)
      return [
        {
          key,
          label,
          code: "offering.trying",
          facts: { ...facts, request: trying },
          nextTry: undefined,
          decline: undefined,
        },
      ];
    const decline = `${label} cannot be made in ${pool.provider}: ${failures} launches failed in a row since ${new Date(since).toISOString()}, the last one with: ${error}`;
    return [{ key, label, code, facts, nextTry: until, decline: hopeless ? decline : undefined }];
  }
  return undefined;
}

/** The request waits for an offering; an idle node serves it as well, and it may lose the image of any of its labels. */
export function waitForOffering(
  state: State,
  turn: Turn,
  pool: PoolState,
  waiting: Waiting,
  { zones }: ClosedEverywhere,
): void {
  for (const label of new Set(waiting.record.nodeTypes)) parkForLabel(state, pool, waiting, label);
  for (const { key, nextTry } of zones) {
    state.waits.join("gate", key, waiting);
    waitForGate(state, turn, key, nextTry);
  }
}

/** Marks the request as the one that tries the closed offerings among these labels, because it is about to launch them. */
export function triesOfferings(
  state: State,
  pool: LocalPool,
  launched: readonly { readonly label: string; readonly type: string | undefined }[],
  az: string | null,
  request: string,
): void {
  if (state.gates.closed.size === 0) return;
  for (const { label, type } of launched) tries(state, gatesOf(pool, label, az, type), request);
}
