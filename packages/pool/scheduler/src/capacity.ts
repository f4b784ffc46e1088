import { add, exceeded, type Resources } from "@nodeyard/driver";
import { compareRequests, MIN_READY } from "@nodeyard/model";
import { defined } from "@nodeyard/runtime";
import { quotaKey, stoppedBy } from "./gates.ts";
import { total } from "./needs.ts";
import type { Nodeset } from "./nodeset.ts";
import type { Blocked, PoolState, Scope } from "./pool-state.ts";
import { compareRank } from "./share-queue.ts";
import type { State, Turn } from "./state.ts";
import type { LocalPool, VerdictCode } from "./types.ts";
import { quotaOf, unreadableFacts, usedOfPool, usedOfProvider, usedOfTenant } from "./used.ts";
import type { Waiting } from "./waits.ts";

/** How often the cloud's quota is read while a request waits for it, milliseconds. */
const ASK_AGAIN_MS = 30_000;

type Facts = Readonly<Record<string, unknown>>;

/** Why a nodeset cannot be launched in a pool now. */
export type NoRoom =
  | { readonly kind: "decline"; readonly reason: string }
  /** Other users of the quota leave too little, even if this installation had no node. It blocks no other request, and waits until they use less. */
  | { readonly kind: "parked"; readonly code: VerdictCode; readonly facts: Facts }
  /**
   * The request waits at the head of its queue, and the pool makes room for it. `keeps`: nodes of its plan, which must not be deleted.
   */
  | {
      readonly kind: "blocked";
      readonly code: VerdictCode;
      readonly facts: Facts;
      readonly nextTry?: number;
      readonly keeps: ReadonlySet<string>;
      /** Some room is free already, and is kept for it until there is enough. */
      readonly keepsRoom: boolean;
      readonly blocked: Blocked;
    };

/** The limit of the request's tenant is used up. */
export type OverTenant = {
  readonly kind: "tenant";
  readonly facts: Facts;
  /** What the request needs: kept for it as long as it is the first of its tenant that waits. */
  readonly need: Resources;
};

/** One limit that a nodeset must fit: what is used and asked are amounts by resource. */
interface Check {
  readonly scope: Scope;
  readonly code: VerdictCode;
  readonly limit: Resources;
  readonly used: Resources;
  readonly asked: Resources;
}

/** What is reserved for requests that come first; `head` is the first of them. */
interface Kept {
  readonly amount: Resources;
  readonly head: string | undefined;
}

const NOTHING: Kept = { amount: {}, head: undefined };

/** Undefined: there is room, for this request and for those that come before it. */
export function roomFor(
  state: State,
  steady: number,
  pool: LocalPool,
  waiting: Waiting,
  set: Nodeset,
): NoRoom | undefined {
  const room = countRoom(state, steady, pool, waiting, set);
  return room === undefined || room.kind === "decline" ? room : asRead(state, pool, room);
}

/** Adds to a verdict about the cloud's quota when the quota was read, and, if the cloud's API fails now, its error. */
function asRead<T extends Exclude<NoRoom, { kind: "decline" }>>(state: State, pool: LocalPool, room: T): T {
  const { readAt, failing } = state.policy.providers.get(pool.provider) ?? {};
  // Records of failed launches fill a pool while its cloud is down, so its limit is not the reason then.
  const hidden = room.code === "capacity.pool" && failing !== undefined;
  if (room.code !== "capacity.provider" && room.code !== "capacity.refused" && !hidden) return room;
  const facts = { ...room.facts, ...defined({ quota_read_at: readAt }) };
  if (failing === undefined) return { ...room, facts };
  const { since, error } = failing;
  return { ...room, code: "provider.failing", facts: { error, failing_since: since, ...facts } };
}

/** Judges all limits and names the first that is too small. All are looked at, since a head reserves of each that it lacks. */
function countRoom(
  state: State,
  steady: number,
  pool: LocalPool,
  waiting: Waiting,
  { nodes, need, launching }: Nodeset,
): NoRoom | undefined {
  // First, because no deletion of our own nodes helps against what others use.
  const foreign = exceeded(quotaOf(state, pool), {}, need);
  if (foreign !== undefined) return beyondOthers(state, pool, waiting, foreign, need);
  const scopes = new Set<Scope>();
  let first: { check: Check; over: string; behind: string | undefined } | undefined;
  for (const check of checksOf(state, pool, need, launching.length)) {
    // `short`: the limit itself is used up. Otherwise there may be room that is reserved for a request that comes first.
    const short = exceeded(check.limit, check.used, check.asked);
    const kept = short === undefined ? keptFor(state, pool, waiting, check) : NOTHING;
    const over = short ?? exceeded(check.limit, add(check.used, kept.amount), check.asked);
    if (over === undefined) continue;
    scopes.add(check.scope);
    first ??= { check, over, behind: kept.head };
  }
  // Our sums may say that there is room when the cloud has refused: the cloud knows what others took since.
  const refused = stoppedBy(state, steady, quotaKey(pool.provider), waiting.id);
  if (first === undefined && refused === undefined) return undefined;
  // Nodes kept ahead of requests must never hold a queue up, so a min-ready request is declined rather than made to wait.
  const min = waiting.record.requestor === MIN_READY;
  const keeps = new Set(nodes.flatMap((node) => ("reuse" in node ? [node.reuse] : [])));
  const blockedBy = (lacks: number): Blocked => ({
    ...{ id: waiting.id, waiting, need, launches: launching.length, scopes },
    missing: lacks,
  });
  if (first === undefined) {
    const code = "capacity.refused";
    if (min) return { kind: "decline", reason: `at capacity (${code})` };
    const { closed, trying } = refused!;
    const next = trying === undefined ? { nextTry: closed.until } : {};
    const tried = defined({ tried_by: trying });
    const facts = { provider: pool.provider, refusals: closed.failures, ...tried };
    return {
      kind: "blocked",
      code,
      facts,
      ...next,
      keeps,
      keepsRoom: false,
      blocked: blockedBy(launching.length),
    };
  }
  const { check, over, behind } = first;
  const code = behind === undefined ? check.code : "capacity.reserved";
  if (min) return { kind: "decline", reason: `at capacity (${code}: ${over})` };
  const facts = {
    pool: pool.key,
    resource: over,
    limit: check.limit[over],
    used: check.used[over] ?? 0,
    need: check.asked[over],
    ...defined({ kept_for: behind }),
    ...unreadableFacts(state),
  };
  const keepsRoom = behind === undefined && (check.used[over] ?? 0) < check.limit[over]!;
  const blocked = blockedBy(missing(check, behind, launching.length));
  return { kind: "blocked", code, facts, keeps, keepsRoom, blocked };
}

/** All limits of a launch, in the order in which verdicts name them. */
function checksOf(state: State, pool: LocalPool, need: Resources, launches: number): readonly Check[] {
  const provider = state.policy.providers.get(pool.provider);
  const most = provider?.maxConcurrency ?? Number.POSITIVE_INFINITY;
  return [
    {
      scope: "pool",
      code: "capacity.pool",
      limit: pool.limits,
      used: usedOfPool(state, pool),
      asked: need,
    },
    {
      scope: "provider",
      code: "capacity.provider",
      limit: quotaOf(state, pool),
      used: usedOfProvider(state, pool.provider),
      asked: need,
    },
    {
      scope: "launching",
      code: "capacity.concurrency",
      limit: { instances: most },
      used: state.usage.of(`launching ${pool.provider}`),
      // A nodeset that is larger than the limit is launched when nothing else is being launched; otherwise it would wait for ever.
      asked: { instances: Math.min(launches, most) },
    },
  ];
}

/** How many machines must be deleted before the request fits; 0 when deleting machines does not help. */
function missing({ scope, used, limit }: Check, behind: string | undefined, launches: number): number {
  if (scope === "launching" || behind !== undefined) return 0;
  return Math.max(1, (used.instances ?? 0) + launches - (limit.instances ?? Number.POSITIVE_INFINITY));
}

/**
 * What a scope reserves for blocked heads of queues that come before this request, so that a small request passes a large one only
 * when it does not delay it. In its own pool a head reserves all that it needs. From other pools of its provider it reserves only what
 * it lacks, so that a pool at its own limit does not block the others.
 */
function keptFor(state: State, pool: LocalPool, waiting: Waiting, { scope, limit, asked }: Check): Kept {
  // Every request behind a blocked head comes here at each change of its pool.
  if (!Object.keys(asked).some((name) => limit[name] !== undefined)) return NOTHING;
  let { amount, head } = NOTHING;
  const seen = new Set<string>([waiting.id]);
  const keep = ({ policy, blocked }: Pick<PoolState, "policy" | "blocked">) => {
    if (blocked === undefined || policy.provider !== pool.provider || seen.has(blocked.id)) return;
    const own = policy.key === pool.key;
    if (!own && (scope === "pool" || !blocked.scopes.has(scope))) return;
    // Only for those that come first: a head of lower priority does not hold up this request.
    if (!comesFirst(state, blocked.waiting, waiting)) return;
    seen.add(blocked.id);
    amount = add(amount, scope === "launching" ? { instances: blocked.launches } : blocked.need);
    head ??= blocked.id;
  };
  for (const one of state.pools.values()) keep(one);
  // Requests that were put back for a pause.
  for (const one of state.requests.putBack.values()) keep(one);
  return { amount, head };
}

/**
 * Whether a head of another pool goes before a request. With shares, heads of one priority go in the order in which they became heads:
 * an order by use would change while they wait, and what one has waited for would go to the other again and again.
 */
function comesFirst(state: State, head: Waiting, waiting: Waiting): boolean {
  const byAge = compareRequests(head, waiting);
  const byRank = state.shares.on ? compareRank(head, waiting) : byAge;
  if (byRank !== 0) return byRank < 0;
  const [own, other] = [waiting, head].map(({ id }) => state.requests.of(id)?.headSince);
  // Put back for a pause, it is no head at present, and had its turn.
  if (other === undefined) return true;
  return own === undefined || other < own || (other === own && byAge < 0);
}

/**
 * Reserves the capacity of a request that its pool tries again after a pause, so that requests behind it do not take it. `leavePlace`
 * ends the reservation when the pause is over.
 */
export function keepPlace(state: State, { policy }: PoolState, waiting: Waiting): void {
  const { nodeTypes } = waiting.record;
  const scopes: ReadonlySet<Scope> = new Set(["pool", "provider", "launching"]);
  const blocked = {
    id: waiting.id,
    waiting,
    need: total(policy, nodeTypes),
    launches: nodeTypes.length,
    scopes,
    missing: 0,
  };
  state.requests.putBack.set(waiting.id, { policy, blocked });
}

/**
 * Other users of the cloud leave too little. Nodepool's launcher declines then, which fails a request that only has to wait. This one
 * waits: others give their part back, and one of our own machines counts as foreign too while the cloud still lists it after the
 * deletion of its record.
 */
function beyondOthers(
  state: State,
  pool: LocalPool,
  { record }: Waiting,
  resource: string,
  need: Resources,
): NoRoom {
  const provider = state.policy.providers.get(pool.provider);
  const left = provider?.quota[resource] ?? 0;
  if (record.requestor === MIN_READY) {
    return { kind: "decline", reason: `at capacity (others leave ${left} of ${resource})` };
  }
  const limit = provider?.limits?.[resource] ?? left;
  const facts = { pool: pool.key, resource, limit, used_by_others: limit - left, need: need[resource] };
  return { kind: "parked", code: "capacity.provider", facts };
}

/**
 * The tenant's limit, as docs/contract/launcher.md, "Quota and limits", says, and in addition in order: what the tenant's first waiting
 * request needs is kept for it, so that small later requests cannot overtake it for ever.
 */
export function overTenant(
  state: State,
  pool: LocalPool,
  waiting: Waiting,
  need = total(pool, waiting.record.nodeTypes),
): OverTenant | undefined {
  const tenant = waiting.record.tenantName;
  const limit = tenant === null ? undefined : state.policy.tenantLimits.get(tenant);
  if (tenant === null || limit === undefined) return undefined;
  const used = usedOfTenant(state, tenant);
  const facts = (over: string) => ({
    tenant,
    resource: over,
    limit: limit[over],
    used: used[over] ?? 0,
    need: need[over],
    ...unreadableFacts(state),
  });
  const over = exceeded(limit, used, need);
  if (over !== undefined) return { kind: "tenant", facts: facts(over), need };
  const first = state.waits.line("tenant", tenant).at(0);
  if (first === undefined || compareRequests(first, waiting) >= 0) return undefined;
  const behind = exceeded(limit, add(used, first.need ?? {}), need);
  if (behind === undefined) return undefined;
  return { kind: "tenant", facts: { ...facts(behind), kept_for: first.id }, need };
}

/** A request waits for a provider's quota: read it again soon, because other users may have freed some. */
export function wantQuota(state: State, turn: Turn, provider: string): void {
  // Many requests that wait cause one question.
  if (state.timers.get("quota", provider) === undefined)
    state.timers.set("quota", provider, turn.steady + ASK_AGAIN_MS);
}

/** Whether a request still waits for the provider's quota, so that reading it again is worth a call. */
export function isQuotaWanted(state: State, provider: string): boolean {
  if (state.waits.line("quota", provider).size > 0) return true;
  for (const { policy, blocked } of state.pools.values())
    if (policy.provider === provider && blocked?.scopes.has("provider")) return true;
  return false;
}
