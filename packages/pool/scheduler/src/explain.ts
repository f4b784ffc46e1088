import type { RequestRecord } from "@nodeyard/model";
import type { PoolState } from "./pool-state.ts";
import { inertProviders } from "./requests.ts";
import { compareRank } from "./share-queue.ts";
import { sharerOf } from "./shares.ts";
import type { State } from "./state.ts";
import type { Verdict } from "./types.ts";
import { hostTurn } from "./waiting.ts";
import type { Waiting } from "./waits.ts";

/**
 * Why a request is not served now: what the scheduler noted, or else what its place says. Undefined only for a request
 * that has ended or is not known. Costs nothing until somebody asks, so that a long queue needs no note per request.
 */
export function explain(state: State, id: string): Verdict | undefined {
  const known = state.requests.of(id);
  if (known?.entry === undefined) return undefined;
  const { handling, verdict, entry } = known;
  const { record } = entry;
  if (record.state !== "requested" && record.state !== "pending") return undefined;
  const since = (record.stateTime ?? 0) * 1000;
  // The verdict is of the time before; while a handler works, only that counts.
  if (handling !== undefined) return { code: "handling", facts: { pool: handling.pool }, since };
  if (verdict !== undefined) return { ...verdict, ...hostsNow(state, known.waiting, verdict) };
  if (record.state === "pending") return { code: "pending.elsewhere", facts: {}, since };
  if (!state.complete) return { code: "tree.incomplete", facts: {}, since };
  return inQueue(state, known.waiting, since) ?? outsideQueues(state, record, since);
}

/** The hosts that are kept for a request change while it waits, and nothing is written down when they do. */
function hostsNow(state: State, waiting: Waiting | undefined, { code, facts }: Verdict): Partial<Verdict> {
  const pool = state.pools.get(String(facts.pool));
  const ofHosts = code === "nodes.none-free" || (code === "queue.share" && pool?.policy.launches === false);
  return ofHosts && waiting !== undefined && pool !== undefined ? hostVerdict(state, pool, waiting) : {};
}

/** Where a request stands in the line for hosts of a pool, and how many of them are kept for it. */
export function hostVerdict(
  state: State,
  pool: PoolState,
  waiting: Waiting,
): Pick<Verdict, "code" | "facts"> {
  const { policy, inventory, hosts } = pool;
  const { id, record } = waiting;
  const wanted = record.nodeTypes.length;
  if (!hosts.doFor(record.nodeTypes)) return { code: "nodes.too-few", facts: { pool: policy.key, wanted } };
  const next = state.shares.on ? pool.turns.get(hostTurn(waiting))?.next.id : undefined;
  if (next !== undefined && next !== id) return behindVerdict(state, pool, waiting, next);
  const line = inventory.placeOf(id);
  const facts = {
    pool: policy.key,
    label: line?.label ?? record.nodeTypes[0],
    ...(line === undefined ? {} : { place: line.place, in_line: line.of }),
    kept: inventory.keptFor(id).length,
    wanted,
  };
  return { code: "nodes.none-free", facts };
}

/** Of a request that waits for its turn behind another one: by age, or because of shares. */
export function behindVerdict(
  { shares, requests }: State,
  { policy }: PoolState,
  waiting: Waiting,
  head: string | undefined,
): Pick<Verdict, "code" | "facts"> {
  const first = requests.of(head ?? "")?.waiting;
  const facts = { pool: policy.key, head };
  if (!shares.on || first === undefined || compareRank(first, waiting) !== 0)
    return { code: "queue.behind", facts };
  const [mine, theirs] = [sharerOf(waiting.record), sharerOf(first.record)];
  const by = mine.tenant === theirs.tenant ? "client" : "tenant";
  // Older requests of the same client.
  if (mine[by] === theirs[by]) return { code: "queue.behind", facts };
  const [own, other] = [shares.useOf(mine)[by], shares.useOf(theirs)[by]];
  const numbers = { [by]: mine[by], nodes: own.nodes, weight: own.weight };
  const before = { first: theirs[by], first_nodes: other.nodes, first_weight: other.weight };
  return { code: "queue.share", facts: { ...facts, ...numbers, ...before } };
}

/** A request in several queues is explained by the first pool that has it. */
function inQueue(state: State, waiting: Waiting | undefined, since: number): Verdict | undefined {
  if (waiting === undefined) return undefined;
  for (const pool of state.pools.values()) {
    if (!pool.queue.has(waiting)) continue;
    const head = pool.queue.first?.id;
    if (head === waiting.id) return { code: "queue.next", facts: { pool: pool.policy.key, head }, since };
    return { ...behindVerdict(state, pool, waiting, head), since };
  }
  return undefined;
}

/** It waits in no pool here, and nothing was noted: no pool of ours serves it, or all of ours have declined. */
function outsideQueues(state: State, { declinedBy }: RequestRecord, since: number): Verdict {
  if (state.pools.size === 0) return { code: "pools.none", facts: {}, since };
  const ours = [...state.pools.values()].map(({ policy }) => policy.id);
  const undecided = state.registry.ids().filter((pool) => !declinedBy.includes(pool));
  const inert = inertProviders(state, undecided) ?? inertProviders(state, ours);
  if (inert !== undefined) return { code: "provider.inert", facts: { providers: inert }, since };
  return { code: "declined.here", facts: { undecided }, since };
}
