import { add, exceeded, type Resources, subtract } from "@nodeyard/driver";
import { labelKey, offeringKey, offeringTypeOf } from "@nodeyard/model";
import type { NodeEntry } from "@nodeyard/view";
import { stoppedBy } from "./gates.ts";
import { times, total } from "./needs.ts";
import { isBeingMade } from "./reuse.ts";
import { compareFigures, type Figures } from "./score.ts";
import type { State } from "./state.ts";
import type { LaunchWanted, LocalOffering, LocalPool } from "./types.ts";
import { quotaOf, usedOfPool, usedOfProvider, usedOfTenant, wholeQuotaOf, zoneKey } from "./used.ts";

/** An offering of a label in one zone. */
export interface Candidate {
  readonly offering: LocalOffering;
  readonly az: string | null;
  /** Of its breaker. */
  readonly key: string;
  readonly index: number;
}

/** How much of a former time to ready stays in the mean when another one was seen. */
const KEPT = 0.75;

/** Of each pool as it is configured: by label and zone. A pool never changes, it is replaced. */
const known = new WeakMap<LocalPool, Map<string, Map<string | null, readonly Candidate[]>>>();

/**
 * The offerings of a label that are sold in a zone, in the order in which the configuration and their prices put them; undefined for a
 * label that has no offerings.
 */
export function candidatesOf(
  pool: LocalPool,
  label: string,
  az: string | null,
): readonly Candidate[] | undefined {
  const offerings = pool.offerings?.get(label);
  if (offerings === undefined) return undefined;
  const ofPool = known.get(pool) ?? new Map<string, Map<string | null, readonly Candidate[]>>();
  known.set(pool, ofPool);
  const ofLabel = ofPool.get(label) ?? new Map<string | null, readonly Candidate[]>();
  ofPool.set(label, ofLabel);
  const found =
    ofLabel.get(az) ??
    offerings
      .flatMap((offering, index): Candidate[] => {
        const { type, zone, unavailable } = offering;
        if (unavailable !== undefined || (zone !== null && zone !== az)) return [];
        return [{ offering, az, key: offeringKey({ provider: pool.provider, az, type }), index }];
      })
      .sort((a, b) => compareFigures(asConfigured(a), asConfigured(b)));
  ofLabel.set(az, found);
  return found;
}

/** The figures that do not depend on the moment. */
function asConfigured({ offering: { weight, price }, index }: Candidate): Figures {
  const moment = { fits: true, foreign: false, failures: 0, said: false, room: 0, load: 0, readyMs: null };
  return { ...moment, weight, price, index };
}

/** The zones that the offerings of labels name. */
export function zonesOffered({ offerings }: LocalPool, labels: readonly string[]): readonly string[] {
  if (offerings === undefined) return [];
  return [
    ...new Set(labels.flatMap((label) => offerings.get(label)?.flatMap(({ zone }) => zone ?? []) ?? [])),
  ];
}

/** Whether an hour costs more than the configuration allows. A price that is not known stops nothing. */
export function isTooDear({ price, maxPrice }: LocalOffering): boolean {
  return price !== null && maxPrice !== null && price > maxPrice;
}

/** What nodes are wanted for, and what else their request takes. */
export interface Wanted {
  readonly request: string;
  readonly tenant: string | null;
  /** Nodes of the label, which are all bought as one offering. */
  readonly count: number;
  /** What the request launches beside them. */
  readonly beside: Resources;
  /** What its ready nodes take; absent: it has none. */
  readonly ready?: Resources;
}

export interface Chosen {
  readonly candidate: Candidate;
  readonly figures: Figures;
}

/** The best candidate for nodes of a label in a zone, with its figures; undefined: none can ever be had for them, or all are closed. */
export function choose(
  state: State,
  steady: number,
  pool: LocalPool,
  label: string,
  az: string | null,
  wanted: Wanted,
  without: readonly string[] = [],
): Chosen | undefined {
  let best: Chosen | undefined;
  const limits = limitsOf(state, pool, wanted.tenant, wanted.ready);
  for (const candidate of candidatesOf(pool, label, az) ?? []) {
    const { offering } = candidate;
    // Those that come now cost more, or weigh less.
    if (best?.figures.fits && !isLike(offering, best.candidate.offering)) break;
    if (without.includes(offering.type) || !isOpen(state, steady, candidate, wanted.request)) continue;
    const figures = figuresOf(state, steady, pool, candidate, wanted, limits);
    if (figures.foreign && neverFits(limits, offering, wanted)) continue;
    if (best === undefined || compareFigures(figures, best.figures) < 0) best = { candidate, figures };
  }
  return best;
}

/** Whether a request may buy it now, if there is room. */
export function isOpen(state: State, steady: number, { offering, key }: Candidate, request: string): boolean {
  if (isTooDear(offering)) return false;
  return state.gates.closed.size === 0 || stoppedBy(state, steady, key, request) === undefined;
}

/** Whether nodes of a label could be had as one of its offerings if nothing else were there, the others of the request as the least. */
export function canEverFit(
  state: State,
  pool: LocalPool,
  { offering }: Candidate,
  label: string,
  launching: readonly string[],
  tenant: string | null,
): boolean {
  const others = launching.filter((other) => other !== label);
  const count = launching.length - others.length;
  return !neverFits(limitsOf(state, pool, tenant), offering, { count, beside: total(pool, others) });
}

function isLike(a: LocalOffering, b: LocalOffering): boolean {
  return a.weight === b.weight && a.price === b.price;
}

/** What limits nodes, with what is used of it: of the pool, of the provider, of the tenant. */
interface Limit {
  readonly limit: Resources;
  readonly used: Resources;
  /** The part of `used` that the request has itself: its ready nodes, which its tenant's limit counts too. */
  readonly kept: Resources;
  /** Absent: as `limit`. The cloud's own, of which others leave `limit` at present. */
  readonly whole?: Resources;
}

function limitsOf(
  state: State,
  pool: LocalPool,
  tenant: string | null,
  ready: Resources = {},
): readonly Limit[] {
  const own = tenant === null ? undefined : state.policy.tenantLimits.get(tenant);
  return [
    { limit: pool.limits, used: usedOfPool(state, pool), kept: {} },
    {
      limit: quotaOf(state, pool),
      used: usedOfProvider(state, pool.provider),
      kept: {},
      whole: wholeQuotaOf(state, pool),
    },
    ...(own === undefined
      ? []
      : [{ limit: own, used: add(usedOfTenant(state, tenant!), ready), kept: ready }]),
  ];
}

function neverFits(
  limits: readonly Limit[],
  { need }: LocalOffering,
  { count, beside }: Pick<Wanted, "count" | "beside">,
): boolean {
  const all = add(beside, times(need, count));
  return limits.some(({ limit, kept, whole = limit }) => exceeded(whole, kept, all) !== undefined);
}

/** The figures of a candidate. All but the first are looked up when a comparison comes to them. */
export function figuresOf(
  state: State,
  steady: number,
  pool: LocalPool,
  { offering, az, key, index }: Candidate,
  { count, beside }: Pick<Wanted, "count" | "beside">,
  limits = limitsOf(state, pool, null),
): Figures {
  const { need, weight, price } = offering;
  const all = add(beside, count === 1 ? need : times(need, count));
  const fits = limits.every(({ limit, used }) => exceeded(limit, used, all) === undefined);
  return {
    fits,
    get foreign() {
      return !fits && limits.some(({ limit, kept }) => exceeded(limit, kept, all) !== undefined);
    },
    weight,
    price,
    index,
    get failures() {
      return state.gates.failures.get(key)?.tally.row ?? 0;
    },
    get said() {
      return (state.zonesWithRoom.get(key) ?? Number.NEGATIVE_INFINITY) > steady;
    },
    get room() {
      return Math.min(...limits.map((one) => roomIn(one, need)));
    },
    get load() {
      return az === null ? 0 : (state.usage.of(zoneKey(pool.key, az)).instances ?? 0);
    },
    get readyMs() {
      return state.readyTimes.get(key) ?? null;
    },
  };
}

/** How many nodes fit beside what is used. */
function roomIn({ limit, used }: Limit, need: Resources): number {
  let room = Number.POSITIVE_INFINITY;
  for (const name in need) {
    if (need[name]! <= 0 || limit[name] === undefined) continue;
    room = Math.min(room, Math.max(0, Math.floor((limit[name] - (used[name] ?? 0)) / need[name]!)));
  }
  return room;
}

/**
 * Another offering for a node whose own is closed or was refused: the best one that is open in the zone of its nodeset and for which there
 * is room. The request takes it without another plan, so a stock-out costs one launch of one node.
 */
export function nextOffering(state: State, steady: number, launch: LaunchWanted): Candidate | undefined {
  const pool = state.pools.get(launch.pool)?.policy;
  const { node, label, offering, request } = launch;
  if (pool === undefined || stoppedBy(state, steady, labelKey(label), request) !== undefined)
    return undefined;
  const tenant = state.requests.entry(request)?.record.tenantName ?? null;
  // What the node takes as it was planned becomes free.
  const beside = subtract({}, state.usage.held(node));
  const without = [...(launch.without ?? []), offering.type];
  const found = choose(
    state,
    steady,
    pool,
    label,
    offering.az,
    { request, tenant, count: 1, beside },
    without,
  );
  return found?.figures.fits === true ? found.candidate : undefined;
}

/** A node of an offering became ready: how long that took is a figure of the offering. */
export function noteReady(state: State, before: NodeEntry | undefined, after: NodeEntry | undefined): void {
  if (before?.record.state !== "building" || after?.record.state !== "ready") return;
  if (!isBeingMade(before.record)) return;
  const type = offeringTypeOf(before.record);
  const { provider, az, stateTime } = before.record;
  if (type === undefined || provider === null || stateTime === null || after.record.stateTime === null)
    return;
  const ms = Math.max(0, (after.record.stateTime - stateTime) * 1000);
  const key = offeringKey({ provider, az, type });
  const mean = state.readyTimes.get(key) ?? ms;
  state.readyTimes.set(key, KEPT * mean + (1 - KEPT) * ms);
}
