import { inertProviders } from "./requests.ts";
import type { PoolState, State } from "./state.ts";
import type { Verdict } from "./types.ts";
import type { Waiting } from "./waits.ts";

/**
 * Why a request is not served now: what the scheduler noted, or else what its place says. Undefined only for a request
 * that has ended or is not known. Costs nothing until somebody asks, so that a long queue needs no note per request.
 */
export function explain(state: State, id: string): Verdict | undefined {
  const entry = state.requests.get(id);
  if (entry === undefined) return undefined;
  const { record } = entry;
  if (record.state !== "requested" && record.state !== "pending") return undefined;
  const since = (record.stateTime ?? 0) * 1000;
  const handling = state.handling.of(id);
  if (handling !== undefined) return { code: "handling", facts: { pool: handling.pool }, since };
  const noted = state.verdicts.get(id);
  if (noted !== undefined) return { ...noted, facts: factsNow(state, id, noted) };
  if (record.state === "pending") return { code: "pending.elsewhere", facts: {}, since };
  if (!state.complete) return { code: "tree.incomplete", facts: {}, since };
  return inQueue(state, id, since) ?? outsideQueues(state, id, since);
}

/** What is kept for a request moves while it waits, and nothing is written down when it does. */
function factsNow(state: State, id: string, { code, facts }: Verdict): Verdict["facts"] {
  const waiting = state.waiting.get(id);
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

function inQueue(state: State, id: string, since: number): Verdict | undefined {
  const waiting = state.waiting.get(id);
  if (waiting === undefined) return undefined;
  for (const pool of state.pools.values()) {
    if (!pool.queue.has(waiting)) continue;
    const head = pool.queue.at(0)?.id;
    const code = head === id ? "queue.next" : "queue.behind";
    return { code, facts: { pool: pool.policy.key, head }, since };
  }
  return undefined;
}

function outsideQueues(state: State, id: string, since: number): Verdict {
  const { declinedBy } = state.requests.get(id)!.record;
  if (state.pools.size === 0) return { code: "pools.none", facts: {}, since };
  const ours = [...state.pools.values()].map(({ policy }) => policy.id);
  const undecided = state.registry.ids().filter((pool) => !declinedBy.includes(pool));
  const inert = inertProviders(state, undecided) ?? inertProviders(state, ours);
  if (inert !== undefined) return { code: "provider.inert", facts: { providers: inert }, since };
  return { code: "declined.here", facts: { undecided }, since };
}
