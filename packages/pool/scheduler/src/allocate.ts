import { wantQuota } from "./capacity.ts";
import { hostVerdict } from "./explain.ts";
import { quotaKey, tries } from "./gates.ts";
import { onTenantTook } from "./host-changes.ts";
import { waitForImage } from "./images.ts";
import { mayBegin } from "./launches.ts";
import { triesOfferings, waitForOffering } from "./offerings.ts";
import { type Plan, planFor, reuseAll, YIELD_MS } from "./plan.ts";
import type { PoolState } from "./pool-state.ts";
import { decline, isInert } from "./requests.ts";
import { leavingFor, mayHave } from "./reuse.ts";
import { sharerOf } from "./shares.ts";
import { planSlot } from "./slots.ts";
import { clearVerdict, freeNodes, removeFree, type State, setVerdict, type Turn } from "./state.ts";
import type { PlannedNode } from "./types.ts";
import { zoneKey } from "./used.ts";
import {
  dirtyProvider,
  enqueue,
  forgetYield,
  leaveQueue,
  parkForHosts,
  parkForLabel,
  parkForTenant,
  stopWaiting,
  wakeHeldUp,
  wakeNext,
  wakeTenant,
} from "./waiting.ts";
import type { Waiting } from "./waits.ts";

/** Most requests that one pass looks at behind a blocked head, so that its cost does not grow with the queue. */
const LOOK_BEHIND = 64;
/** Most requests that one pass looks at in addition for each label with idle nodes. */
const LOOK_IN_LINE = 8;

/**
 * Serves a pool's queue from its head until the queue is empty, its head is blocked, or the turn's budget is spent. Returns the rest
 * of the budget. When the budget runs out the pool stays in `todo`, and the next turn continues.
 */
export function allocate(state: State, turn: Turn, pool: PoolState, budget: number): number {
  if (isInert(state, pool.policy.provider)) return budget;
  const before = blockedId(pool);
  pool.blocked = undefined;
  const left = serve(state, turn, pool, budget);
  // The reservation of the former head is free: other pools of the provider, and min-ready, may use it.
  if (before !== undefined && before !== blockedId(pool)) {
    dirtyProvider(state, pool.policy.provider);
    if (pool.blocked === undefined) wakeHeldUp(state, pool);
  }
  return left;
}

/** A function, because the compiler takes the property for what was assigned to it last. */
function blockedId({ blocked }: PoolState): string | undefined {
  return blocked?.id;
}

/** Plans the first request of the queue again and again, until none is left or it has to wait. */
function serve(state: State, turn: Turn, pool: PoolState, budget: number): number {
  let left = budget;
  for (let head = pool.queue.first; head !== undefined; head = pool.queue.first) {
    if (left-- <= 0) {
      state.todo.pools.add(pool.policy.key);
      return 0;
    }
    // Each accepted request writes its node records at once, so their number is limited until their launches have begun.
    if (state.requests.starting.size >= state.policy.maxStarting) {
      state.waits.join("start", pool.policy.key, head);
      setVerdict(state, turn, head.id, "queue.starting", { starting: state.requests.starting.size });
      return left;
    }
    const plan = planFor(state, turn.steady, pool, head);
    if (plan.kind === "blocked") return block(state, turn, pool, head, plan, left);
    carryOut(state, turn, pool, head, plan);
  }
  pool.fresh.clear();
  setPaused(turn, pool, false);
  return left;
}

/** Does what a plan says: accepts, declines, or takes the request out of the queue and makes it wait for what it lacks. */
function carryOut(
  state: State,
  turn: Turn,
  pool: PoolState,
  waiting: Waiting,
  plan: Exclude<Plan, { kind: "blocked" }>,
): void {
  const { id } = waiting;
  switch (plan.kind) {
    case "serve":
      return accept(state, turn, pool, waiting, plan.nodes, plan.zone);
    case "decline":
      return decline(state, turn, id, [pool.policy.id], plan.reason);
    case "yield":
      return giveWay(state, turn, pool, waiting, plan);
    case "want": {
      const hosts = parkForHosts(state, pool, waiting);
      if (hosts !== undefined)
        return accept(state, turn, pool, waiting, reuseAll(waiting.record, hosts), null);
      const { code, facts } = hostVerdict(state, pool, waiting);
      setVerdict(state, turn, id, code, facts);
      break;
    }
    case "image": {
      // Besides the image it waits for an idle node of the label, which needs no image.
      parkForLabel(state, pool, waiting, plan.label);
      const givenUpAt = waitForImage(state, turn, plan.image, waiting);
      setVerdict(state, turn, id, "image.waits", { pool: pool.policy.key, ...plan.facts }, givenUpAt);
      break;
    }
    case "closed": {
      const { code, facts, nextTry } = plan.closed;
      waitForOffering(state, turn, pool, waiting, plan.closed);
      setVerdict(state, turn, id, code, facts, nextTry);
      break;
    }
    case "parked":
      // Each idle node of one of its labels makes its launches fewer, so it waits for these too.
      for (const label of new Set(waiting.record.nodeTypes)) parkForLabel(state, pool, waiting, label);
      state.waits.join("quota", pool.policy.provider, waiting);
      wantQuota(state, turn, pool.policy.provider);
      setVerdict(state, turn, id, plan.code, plan.facts);
      break;
    case "tenant":
      leaveQueue(state, pool, waiting);
      parkForTenant(state, waiting, plan.need);
      setVerdict(state, turn, id, "capacity.tenant", plan.facts);
      break;
    case "budget":
      leaveQueue(state, pool, waiting);
      if (waiting.record.tenantName !== null) state.waits.join("budget", waiting.record.tenantName, waiting);
      setVerdict(state, turn, id, "budget.used", plan.facts, turn.steady + (plan.until - turn.now));
      break;
  }
  // It waits for something else now, so the part of its tenant's limit that was kept for it goes to the tenant's other requests.
  if (plan.kind !== "tenant" && waiting.record.tenantName !== null)
    wakeTenant(state, waiting.record.tenantName);
  // Pools that yielded to this pool take the request back into their queues, because this pool cannot serve it now.
  for (const other of state.pools.values())
    if (state.waits.leave("yield", other.policy.key, waiting)) enqueue(state, other, waiting);
}

/** Yields to another pool, for `YIELD_MS` at most: a pool that is registered but never serves must not hold the request for ever. */
function giveWay(
  state: State,
  turn: Turn,
  pool: PoolState,
  waiting: Waiting,
  { code, facts }: Extract<Plan, { kind: "yield" }>,
): void {
  leaveQueue(state, pool, waiting);
  state.waits.join("yield", pool.policy.key, waiting);
  // The first yield counts: a request that goes from one pool to the next does not get a minute at each.
  const known = state.requests.at(waiting.id);
  const since = known.yieldedAt ?? turn.steady;
  known.yieldedAt = since;
  state.timers.set("yield", waiting.id, since + YIELD_MS);
  setVerdict(state, turn, waiting.id, code, facts, since + YIELD_MS);
}

/**
 * Accepts a request: reserves the capacity of its launches and claims its idle nodes, before any record shows them, so that no other
 * request of this turn is planned with the same capacity.
 */
function accept(
  state: State,
  turn: Turn,
  pool: PoolState,
  waiting: Waiting,
  nodes: readonly PlannedNode[],
  zone: string | null,
): void {
  // Before `stopWaiting`, which would give the hosts that are kept for this request to the next one.
  if (!pool.policy.launches)
    pool.inventory.take(
      waiting.id,
      nodes.flatMap((node) => ("reuse" in node ? [node.reuse] : [])),
    );
  const { policy } = pool;
  const reserved: { label: string; node: string; type: string | undefined }[] = [];
  const claimed: string[] = [];
  const tenant = waiting.record.tenantName;
  const sharer = sharerOf(waiting.record);
  for (const [index, node] of nodes.entries()) {
    if ("reuse" in node) {
      removeFree(state, node.reuse);
      state.shares.set(node.reuse, sharer);
      claimed.push(node.reuse);
      continue;
    }
    // The record has no id yet. Its capacity counts under this name until the record appears in the view.
    const holder = `${waiting.id}#${index}`;
    const keys = [`pool ${policy.key}`, `provider ${policy.provider}`, `launching ${policy.provider}`];
    if (tenant !== null) keys.push(`tenant ${tenant}`);
    if (zone !== null) keys.push(zoneKey(policy.key, zone));
    state.usage.set(holder, keys, { ...node.launch, instances: node.launch.instances ?? 1 });
    state.shares.set(holder, sharer);
    reserved.push({ label: node.label, node: holder, type: node.type });
  }
  const planned = nodes.map((node): PlannedNode => {
    if ("reuse" in node) return node;
    const slot = planSlot(state, turn, policy.provider, node.label, waiting);
    const permitted = mayBegin(state, policy, node.label, zone, node.type);
    return { ...node, permitted, ...(slot && { slot }) };
  });
  stopWaiting(state, waiting.id);
  forgetYield(state, waiting.id);
  triesOfferings(state, policy, reserved, zone, waiting.id);
  if (tenant !== null && reserved.length > 0) onTenantTook(state, tenant);
  if (reserved.length > 0) tries(state, [quotaKey(policy.provider)], waiting.id);
  state.requests.begin(waiting.id, { pool: policy.key, reserved, claimed }, true);
  clearVerdict(state, turn, waiting.id);
  turn.actions.push({ type: "accept", request: waiting.id, pool: policy.key, nodes: planned, zone });
}

/**
 * The head of the queue waits for capacity. Idle nodes that it cannot use are deleted to make room, and the registered pool shows
 * `paused`, so that pools of lower priority accept instead. Requests behind the head may still take idle nodes that it does not want,
 * and may launch nodes that do not delay it.
 */
function block(
  state: State,
  turn: Turn,
  pool: PoolState,
  head: Waiting,
  plan: Extract<Plan, { kind: "blocked" }>,
  budget: number,
): number {
  pool.blocked = plan.blocked;
  if (state.shares.on) state.requests.at(head.id).headSince ??= turn.steady;
  if (plan.keepsRoom) pool.queue.pin(head);
  setVerdict(state, turn, head.id, plan.code, plan.facts, plan.nextTry);
  setPaused(turn, pool, true);
  if (plan.blocked.scopes.has("provider")) wantQuota(state, turn, pool.policy.provider);
  makeRoom(state, turn, pool, head, plan);
  wakeNext(state, pool, head);
  return lookBehind(state, turn, pool, head, behind(state, pool, new Set(head.record.nodeTypes)), budget);
}

/**
 * Looks only at the requests that joined a blocked pool since its last look. The older ones need no second look: a change of anything
 * that their plans depend on puts the whole pool into `todo`.
 */
export function lookAtNewcomers(state: State, turn: Turn, pool: PoolState, budget: number): number {
  const head = pool.queue.first;
  if (head === undefined || head.id !== pool.blocked?.id) return allocate(state, turn, pool, budget);
  return lookBehind(state, turn, pool, head, state.shares.inOrder([...pool.fresh]), budget);
}

/** Serves each candidate that does not delay the head; returns the rest of the budget. */
function lookBehind(
  state: State,
  turn: Turn,
  pool: PoolState,
  head: Waiting,
  candidates: Iterable<Waiting>,
  budget: number,
): number {
  const wanted = new Set(head.record.nodeTypes);
  const looked = new Set<Waiting>();
  let left = budget;
  for (const waiting of candidates) {
    if (!pool.queue.has(waiting) || waiting === head || looked.has(waiting)) continue;
    looked.add(waiting);
    if (left-- <= 0 || state.requests.starting.size >= state.policy.maxStarting) {
      // The budget ended before all candidates were planned; the next turn continues with the others.
      if (left < 0 && pool.fresh.size > 0) state.todo.pools.add(pool.policy.key);
      return Math.max(0, left);
    }
    pool.fresh.delete(waiting);
    const next = planFor(state, turn.steady, pool, waiting);
    if (next.kind === "blocked") {
      // Its former verdict may name an image or a former head of the queue, for which it no longer waits.
      clearVerdict(state, turn, waiting.id);
      wakeNext(state, pool, waiting);
      continue;
    }
    // It waits for something of its own, or is declined; that takes nothing from the head.
    if (next.kind !== "serve") carryOut(state, turn, pool, waiting, next);
    // An idle node of a label that the head wants, and may have, is kept for the head, which can then launch one node less.
    else if (
      next.nodes.every(
        (node) =>
          "launch" in node ||
          !wanted.has(node.label) ||
          !mayHave(state.nodes.get(node.reuse)!.record, head.record, true),
      )
    )
      accept(state, turn, pool, waiting, next.nodes, next.zone);
  }
  return Math.max(0, left);
}

/**
 * The requests to look at behind a blocked head: newcomers, the first ones in order, and the first ones that want an idle node. With
 * shares newcomers come last, because only the order says whose turn it is.
 */
function* behind(state: State, pool: PoolState, wanted: ReadonlySet<string>): Generator<Waiting> {
  const { key, labels } = pool.policy;
  // Of what the head wants as well, those that are kept for others.
  const isFree = (label: string) =>
    (wanted.has(label) ? [state.kept] : freeNodes(state)).some((index) => index.of(key, label).size > 0);
  const lines = [...labels].filter(isFree);
  const ofLabels = lines.flatMap((label) => pool.queue.line(label, LOOK_IN_LINE));
  const fresh = state.shares.inOrder([...pool.fresh]);
  const inTurn = pool.queue.inTurn(1 + LOOK_BEHIND);
  if (!state.shares.on) yield* fresh;
  yield* inTurn;
  yield* ofLabels;
  if (state.shares.on) yield* fresh;
}

/**
 * Deletes idle nodes of the pool that the blocked head cannot use, as many as it lacks. Kept are only the nodes of its plan: an idle node
 * of one of its labels in another zone is of no use, because a nodeset is launched in one zone.
 */
function makeRoom(
  state: State,
  turn: Turn,
  pool: PoolState,
  head: Waiting,
  plan: Extract<Plan, { kind: "blocked" }>,
): void {
  const { key } = pool.policy;
  // Nodes that are being deleted already give their capacity back without any further deletion.
  let missing = plan.blocked.missing - leavingFor(state, pool, plan.blocked);
  if (missing <= 0) return;
  // Oldest first, and a copy, because the loop takes from it.
  for (const id of [state.kept, state.suspended, state.idle].flatMap((index) => [...index.ofPool(key)])) {
    if (missing <= 0) break;
    if (state.busyNodes.has(id) || plan.keeps.has(id)) continue;
    state.leaving.set(id, key);
    // The node leaves the index before its record changes, so no later event tells min-ready that an idle node is missing.
    const place = removeFree(state, id);
    for (const label of place?.labels ?? []) state.todo.labels.add(label);
    state.busyNodes.add(id);
    const { version } = state.nodes.get(id)!;
    turn.actions.push({ type: "delete", node: id, version, why: `makes room for ${head.id}` });
    missing--;
  }
}

/** Registers the pool as paused, or not: launchers read this before they yield to it. */
function setPaused(turn: Turn, pool: PoolState, paused: boolean): void {
  if (pool.paused === paused) return;
  pool.paused = paused;
  turn.actions.push({ type: "pause", pool: pool.policy.key, paused });
}
