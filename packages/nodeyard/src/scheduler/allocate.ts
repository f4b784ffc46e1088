import { tries, waitForOffering } from "./offerings.ts";
import { looksAtRequests, type Plan, planFor } from "./plan.ts";
import { decline } from "./requests.ts";
import { clearVerdict, type PoolState, type State, setVerdict, type Turn, type Waiting } from "./state.ts";
import type { PlannedNode } from "./types.ts";
import { dequeue, parkForLabel } from "./waiting.ts";

/** Requests behind a blocked head that are looked at for pure reuse, at most. */
const LOOK_BEHIND = 64;

/**
 * Serves a pool's queue from its head until it is empty, blocked, or the turn's budget is spent. Returns what is left
 * of the budget; the pool stays dirty when the budget ended it.
 */
export function allocate(state: State, turn: Turn, pool: PoolState, budget: number): number {
  if (!looksAtRequests(state, pool)) return budget;
  pool.blocked = undefined;
  let left = budget;
  for (let head = pool.queue.at(0); head !== undefined; head = pool.queue.at(0)) {
    if (left-- <= 0) {
      state.dirty.add(pool.policy.key);
      return 0;
    }
    if (state.starting >= state.policy.maxStarting) {
      state.startBlocked.add(pool.policy.key);
      setVerdict(state, turn, head.id, "queue.starting", { starting: state.starting });
      return left;
    }
    const plan = planFor(state, pool, head);
    if (plan.kind === "blocked") {
      block(state, turn, pool, head, plan);
      return left;
    }
    carryOut(state, turn, pool, head, plan);
  }
  setPaused(turn, pool, false);
  return left;
}

function carryOut(
  state: State,
  turn: Turn,
  pool: PoolState,
  waiting: Waiting,
  plan: Exclude<Plan, { kind: "blocked" }>,
): void {
  switch (plan.kind) {
    case "serve":
      return accept(state, turn, pool, waiting, plan.nodes);
    case "decline":
      return decline(state, turn, waiting.id, [pool.policy.id], plan.reason);
    case "yield":
      pool.queue.delete(waiting);
      pool.yielding.set(waiting.id, waiting);
      return setVerdict(state, turn, waiting.id, plan.code, plan.facts);
    case "want":
      parkForLabel(state, pool, waiting, plan.label);
      return setVerdict(state, turn, waiting.id, "nodes.none-free", {
        pool: pool.policy.key,
        label: plan.label,
      });
    case "closed": {
      const { code, facts, nextTry } = plan.closed;
      waitForOffering(state, turn, pool, waiting, plan.closed);
      return setVerdict(state, turn, waiting.id, code, facts, nextTry);
    }
    case "tenant": {
      pool.queue.delete(waiting);
      const tenant = waiting.record.tenantName ?? "";
      const held = state.tenantWaiting.get(tenant) ?? new Set<string>();
      state.tenantWaiting.set(tenant, held.add(waiting.id));
      return setVerdict(state, turn, waiting.id, "capacity.tenant", plan.facts);
    }
  }
}

function accept(
  state: State,
  turn: Turn,
  pool: PoolState,
  waiting: Waiting,
  nodes: readonly PlannedNode[],
): void {
  dequeue(state, waiting);
  state.waiting.delete(waiting.id);
  state.incapable.delete(waiting.id);
  const { policy } = pool;
  const reserved: { label: string; node: string }[] = [];
  const claimed: string[] = [];
  const tenant = waiting.record.tenantName;
  for (const [index, node] of nodes.entries()) {
    if ("reuse" in node) {
      state.idle.remove(node.reuse);
      state.claimed.set(node.reuse, waiting.id);
      claimed.push(node.reuse);
      continue;
    }
    const holder = `${waiting.id}#${index}`;
    const keys = [`pool ${policy.key}`, `provider ${policy.provider}`, `launching ${policy.provider}`];
    if (tenant !== null) keys.push(`tenant ${tenant}`);
    state.usage.set(holder, keys, { ...node.launch, instances: node.launch.instances ?? 1 });
    reserved.push({ label: node.label, node: holder });
  }
  const launched = reserved.map(({ label }) => label);
  tries(state, policy, launched, null, waiting.id);
  state.handling.set(waiting.id, { pool: policy.key, reserved, claimed, starting: true });
  state.starting++;
  clearVerdict(state, turn, waiting.id);
  for (const node of claimed)
    for (const label of state.nodes.get(node)?.record.type ?? []) state.dirtyLabels.add(label);
  turn.actions.push({ type: "accept", request: waiting.id, pool: policy.key, nodes });
}

/**
 * The head waits for capacity: idle nodes of no use to it make room, lower-priority pools are told by `paused`, and
 * requests behind it may still take idle nodes that it does not want.
 */
function block(
  state: State,
  turn: Turn,
  pool: PoolState,
  head: Waiting,
  plan: Extract<Plan, { kind: "blocked" }>,
): void {
  pool.blocked = head.id;
  setVerdict(state, turn, head.id, plan.code, plan.facts);
  setPaused(turn, pool, true);
  makeRoom(state, turn, pool, head, plan.short);
  const wanted = new Set(head.record.nodeTypes);
  const behind: Waiting[] = [];
  for (let index = 1; index <= LOOK_BEHIND; index++) {
    const next = pool.queue.at(index);
    if (next === undefined) break;
    behind.push(next);
  }
  for (const waiting of behind) {
    if (state.starting >= state.policy.maxStarting) return;
    const behindPlan = planFor(state, pool, waiting);
    if (behindPlan.kind === "blocked") continue;
    if (behindPlan.kind !== "serve") carryOut(state, turn, pool, waiting, behindPlan);
    else if (behindPlan.nodes.every((node) => "reuse" in node && !wanted.has(node.label))) {
      accept(state, turn, pool, waiting, behindPlan.nodes);
    }
  }
}

function makeRoom(state: State, turn: Turn, pool: PoolState, head: Waiting, short: number): void {
  const { key } = pool.policy;
  const going = state.makingRoom.get(key) ?? new Set<string>();
  const wanted = new Set(head.record.reuse ? head.record.nodeTypes : []);
  let missing = short - going.size - state.leaving.count(key);
  for (const id of [...state.idle.ofPool(key)]) {
    if (missing <= 0) break;
    if (state.busyNodes.has(id) || state.nodes.get(id)?.record.type.some((label) => wanted.has(label)))
      continue;
    going.add(id);
    state.idle.remove(id);
    state.busyNodes.add(id);
    turn.actions.push({ type: "delete", node: id, why: `makes room for ${head.id}` });
    missing--;
  }
  if (going.size > 0) state.makingRoom.set(key, going);
}

function setPaused(turn: Turn, pool: PoolState, paused: boolean): void {
  if (pool.paused === paused) return;
  pool.paused = paused;
  turn.actions.push({ type: "pause", pool: pool.policy.key, paused });
}
