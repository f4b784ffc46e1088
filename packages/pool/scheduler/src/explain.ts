import type { RequestRecord } from "@nodeyard/model";
import type { PoolState } from "./pool-state.ts";
import { inertProviders } from "./requests.ts";
import type { State } from "./state.ts";
import type { Verdict } from "./types.ts";
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
  if (verdict !== undefined) return { ...verdict, facts: factsNow(state, known.waiting, verdict) };
  if (record.state === "pending") return { code: "pending.elsewhere", facts: {}, since };
  if (!state.complete) return { code: "tree.incomplete", facts: {}, since };
  return inQueue(state, known.waiting, since) ?? outsideQueues(state, record, since);
}

/** The hosts that are kept for a request change while it waits, and nothing is written down when they do. */
function factsNow(state: State, waiting: Waiting | undefined, { code, facts }: Verdict): Verdict["facts"] {
  const pool = state.pools.get(String(facts.pool));
  return code === "nodes.none-free" && waiting !== undefined && pool !== undefined
    ? hostVerdict(pool, waiting).facts
    : facts;
}

/** Where a request stands in the line for hosts of a pool, and how many of them are kept for it. */
export function hostVerdict(
  { policy, inventory, hosts }: PoolState,
  { id, record }: Waiting,
): Pick<Verdict, "code" | "facts"> {
  const wanted = record.nodeTypes.length;
  if (!hosts.doFor(record.nodeTypes)) return { code: "nodes.too-few", facts: { pool: policy.key, wanted } };
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

/** A request in several queues is explained by the first pool that has it. */
function inQueue(state: State, waiting: Waiting | undefined, since: number): Verdict | undefined {
  if (waiting === undefined) return undefined;
  for (const pool of state.pools.values()) {
    if (!pool.queue.has(waiting)) continue;
    const head = pool.queue.at(0)?.id;
    const code = head === waiting.id ? "queue.next" : "queue.behind";
    return { code, facts: { pool: pool.policy.key, head }, since };
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
