import { newRequest } from "@nodeyard/model";
import type { RequestEntry } from "@nodeyard/view";
import { behindVerdict, hostVerdict } from "./explain.ts";
import { type Durations, type Forecast, forecast } from "./forecast.ts";
import { offeringRows } from "./offering-rows.ts";
import { type Plan, planFor, YIELD_MS } from "./plan.ts";
import type { PoolState } from "./pool-state.ts";
import { isInert } from "./requests.ts";
import { type State, type Turn, treeTimeOf } from "./state.ts";
import type { VerdictCode } from "./types.ts";
import { type Line, labelLine, type Waiting } from "./waits.ts";

/** What only one pool says; `verdictCodes` has the rest. */
export const outlookCodes = {
  "pool.can": "It would serve it now",
  "pool.declines": "It would decline it",
  "pool.declined": "It has declined",
  "pool.lacks-label": "It does not offer the label",
} as const;

type OutlookCode = keyof typeof outlookCodes | VerdictCode;

/** Where a request stands in one pool of this launcher. */
export interface Outlook {
  /** Its key. */
  readonly pool: string;
  readonly provider: string;
  /** "serves": a handler works on it there. "can": nothing is in the way. "lacks": it is none of this pool's business. */
  readonly outlook: "serves" | "can" | "waits" | "declines" | "lacks";
  readonly code: OutlookCode;
  readonly facts: Readonly<Record<string, unknown>>;
  /** Tree time, milliseconds. */
  readonly since: number | null;
  readonly nextTry: number | null;
  /** In the line that it waits in, from 1; null: in none of this pool. */
  readonly position: number | null;
  /** How many wait in this pool. */
  readonly waiting: number;
  /** When it has its nodes, if this pool serves it; null: it will not. */
  readonly forecast: Forecast | null;
}

/** Both clocks, as in a turn. */
type At = Pick<Turn, "now" | "steady">;

/** What every pool here thinks of a request, whatever it waits for at last. Changes nothing; costs what a plan and a forecast in each pool cost. */
export function outlooksOf(
  state: State,
  at: At,
  entry: RequestEntry,
  durations: Durations,
): readonly Outlook[] {
  const { id, record } = entry;
  const waiting = state.requests.of(id)?.waiting ?? { id, relativePriority: record.relativePriority, record };
  return [...state.pools.values()].map((pool) => outlookIn(state, at, pool, waiting, durations));
}

/**
 * What would become of a request for one node of a label that came now, last in every line. The id sorts behind every real one:
 * priorities have three digits.
 */
export function outlooksOfLabel(
  state: State,
  at: At,
  label: string,
  durations: Durations,
): readonly Outlook[] {
  const record = newRequest({ state: "requested", nodeTypes: [label], requestor: "explain" }, at.now / 1_000);
  return outlooksOf(
    state,
    at,
    {
      id: "999-9999999999",
      record: { ...record, id: "999-9999999999" },
      version: 0,
    },
    durations,
  );
}

function outlookIn(state: State, at: At, pool: PoolState, waiting: Waiting, durations: Durations): Outlook {
  const { policy } = pool;
  const known = state.requests.of(waiting.id);
  const line = lineOf(state, pool, waiting);
  const judged = judge(state, at, pool, waiting, known?.handling?.pool === policy.key);
  const noted = known?.verdict;
  // The noted verdict is of one pool; its times are true of another pool only if that waits for the same.
  const same = noted?.code === judged.code && (noted.facts.pool ?? policy.key) === policy.key;
  const away = judged.outlook === "declines" || judged.outlook === "lacks";
  const offerings = away ? [] : offeringRows(state, at.steady, policy, waiting, judged.plan);
  const launching = !policy.launches || judged.facts.launches === 0 ? [] : waiting.record.nodeTypes;
  return {
    pool: policy.key,
    provider: policy.provider,
    since: same ? noted.since : null,
    nextTry: same ? (noted.nextTry ?? null) : null,
    outlook: judged.outlook,
    code: judged.code,
    facts: offerings.length === 0 ? judged.facts : { ...judged.facts, offerings },
    ...(judged.nextTry !== undefined && { nextTry: judged.nextTry }),
    position: away ? null : line.position,
    waiting: line.length,
    forecast: away
      ? null
      : forecast({ state, now: at.now, policy, durations }, waiting, judged.code, launching),
  };
}

type Judged = Pick<Outlook, "outlook" | "code" | "facts"> & {
  readonly nextTry?: number;
  /** Absent: none was made. */
  readonly plan?: Plan;
};

/** What the pool would do, with the same plan as `allocate` makes; nothing is changed by it. */
function judge(state: State, at: At, pool: PoolState, waiting: Waiting, handled: boolean): Judged {
  const { policy } = pool;
  const { nodeTypes, declinedBy } = waiting.record;
  if (declinedBy.includes(policy.id)) return { outlook: "declines", code: "pool.declined", facts: {} };
  const lacking = nodeTypes.filter((label) => !policy.labels.has(label));
  if (lacking.length > 0)
    return { outlook: "lacks", code: "pool.lacks-label", facts: { labels: [...new Set(lacking)] } };
  // Before any plan: its own reservation would count against it.
  if (handled) return { outlook: "serves", code: "handling", facts: {} };
  if (isInert(state, policy.provider)) return { outlook: "waits", code: "provider.inert", facts: {} };
  const plan = planFor(state, at.steady, pool, waiting);
  return { ...fromPlan(state, at, pool, waiting, plan), plan };
}

/** A plan as an answer. Unlike `allocate` it also has to say that others stand before the request. */
function fromPlan(state: State, at: At, pool: PoolState, waiting: Waiting, plan: Plan): Judged {
  const waits = (code: VerdictCode, facts: Outlook["facts"], nextTry?: number): Judged => ({
    outlook: "waits",
    code,
    facts,
    ...(nextTry === undefined ? {} : { nextTry: treeTimeOf(at, nextTry) }),
  });
  switch (plan.kind) {
    case "decline":
      return { outlook: "declines", code: "pool.declines", facts: { reason: plan.reason } };
    case "yield": {
      const since = state.requests.of(waiting.id)?.yieldedAt;
      return waits(plan.code, plan.facts, since === undefined ? undefined : since + YIELD_MS);
    }
    case "want": {
      const { code, facts } = hostVerdict(state, pool, waiting);
      return waits(code, facts);
    }
    case "image":
      return waits("image.waits", plan.facts);
    case "closed":
      return waits(plan.closed.code, plan.closed.facts, plan.closed.nextTry);
    case "tenant":
      return waits("capacity.tenant", plan.facts);
    case "budget":
      return waits("budget.used", plan.facts, at.steady + (plan.until - at.now));
    case "parked":
      return waits(plan.code, plan.facts);
    case "blocked":
      return waits(plan.code, plan.facts, plan.nextTry);
    case "serve": {
      if (state.requests.starting.size >= state.policy.maxStarting)
        return waits("queue.starting", { starting: state.requests.starting.size });
      // There is room, but others are first.
      const head = pool.queue.first;
      if (head !== undefined && head.id !== waiting.id && pool.queue.has(waiting))
        return { outlook: "waits", ...behindVerdict(state, pool, waiting, head.id) };
      const launches = plan.nodes.filter((node) => "launch" in node).length;
      return { outlook: "can", code: "pool.can", facts: { launches, zone: plan.zone } };
    }
  }
}

/** Its place among those that wait in the pool: for anything, or for a free node of one of its labels. */
function lineOf(
  state: State,
  pool: PoolState,
  waiting: Waiting,
): { readonly position: number | null; readonly length: number } {
  const lines: Pick<Line, "indexOf" | "size">[] = [pool.queue];
  for (const label of pool.policy.labels) {
    const line = state.waits.line("label", labelLine(pool.policy.key, label));
    if (line.size > 0) lines.push(line);
  }
  const length = lines.reduce((sum, { size }) => sum + size, pool.inventory.size);
  // A request may stand in several lines of the pool; the queue comes first.
  const index = lines.map((line) => line.indexOf(waiting)).find((found) => found >= 0);
  const place = index === undefined ? pool.inventory.placeOf(waiting.id)?.place : index + 1;
  return { position: place ?? null, length };
}
