import { compareText } from "@nodeyard/runtime";
import type { Played } from "./play.ts";
import type { Outcome } from "./played-user.ts";

/** How requests of the demand fared under one configuration. */
export interface WaitFigures {
  /** Of a provider those that it served, for null those that none did. */
  readonly requests: number;
  /** Of served requests, seconds; null: none was served. */
  readonly wait_median: number | null;
  readonly wait_p95: number | null;
  /** Declined by every pool. */
  readonly refused: number;
  /** Not answered at the end. */
  readonly unanswered: number;
}

/** One configuration's figures of a provider and label. */
export interface PlanFigures extends WaitFigures {
  readonly peak_nodes: number;
  readonly peak_cores: number;
  /** MiB. */
  readonly peak_ram: number;
  /** Node hours that nodes were ready and nobody's. */
  readonly idle_hours: number;
  /** Of all nodes together, in the currency of their prices; of nodes without a known price, nothing. */
  readonly cost: number;
}

/** What differs for a provider and label. A request for several labels counts for each. */
export interface PlanRow {
  /** Null: requests that no provider served. */
  readonly provider: string | null;
  /** Null: all labels together. */
  readonly label: string | null;
  readonly today: PlanFigures;
  readonly planned: PlanFigures;
}

/** What differs for the requests of a tenant. */
export interface TenantRow {
  /** Null: requests without one. */
  readonly tenant: string | null;
  readonly today: WaitFigures;
  readonly planned: WaitFigures;
}

/** Both configurations side by side, and the requests that only today's serves, by their keys in `outcomes`. */
export function compare(
  today: Played,
  planned: Played,
): {
  readonly rows: readonly PlanRow[];
  readonly tenants: readonly TenantRow[];
  readonly lost: readonly string[];
} {
  const keys = new Map<string, readonly [provider: string | null, label: string | null]>();
  for (const { outcomes, peaks } of [today, planned]) {
    for (const { provider, labels } of outcomes.values())
      for (const label of labels) keys.set(JSON.stringify([provider, label]), [provider, label]);
    for (const { provider, label } of peaks) keys.set(JSON.stringify([provider, label]), [provider, label]);
  }
  // First each provider as a whole, then its labels; requests that no provider served come last.
  const sorted = [...keys.values()].sort(
    ([a, one], [b, other]) =>
      Number(a === null) - Number(b === null) ||
      compareText(a ?? "", b ?? "") ||
      compareText(one ?? "", other ?? ""),
  );
  const rows = sorted.map(([provider, label]) => ({
    provider,
    label,
    today: figures(today, provider, label),
    planned: figures(planned, provider, label),
  }));
  const lost = [...today.outcomes].flatMap(([request, { result }]) =>
    result === "served" && planned.outcomes.get(request)?.result !== "served" ? [request] : [],
  );
  const names = new Set(
    [...today.outcomes.values(), ...planned.outcomes.values()].map(({ tenant }) => tenant),
  );
  const tenants = [...names]
    .sort((a, b) => compareText(a ?? "", b ?? ""))
    .map((tenant) => {
      const of = ({ outcomes }: Played) =>
        waitsOf([...outcomes.values()].filter((outcome) => outcome.tenant === tenant));
      return { tenant, today: of(today), planned: of(planned) };
    });
  return { rows, tenants, lost };
}

/** The figures of one row; without a request and a node of it under this configuration they are zeros and nulls. */
function figures(
  { outcomes, peaks, hours }: Played,
  provider: string | null,
  label: string | null,
): PlanFigures {
  const of = [...outcomes.values()].filter(
    (outcome) => outcome.provider === provider && (label === null || outcome.labels.includes(label)),
  );
  // Requests that no provider served have no nodes, so no peak.
  const peak = peaks.find((each) => each.provider === provider && each.label === label);
  const spent = hours.find((each) => each.provider === provider && each.label === label);
  return {
    ...waitsOf(of),
    peak_nodes: peak?.nodes ?? 0,
    peak_cores: peak?.cores ?? 0,
    peak_ram: peak?.ram ?? 0,
    idle_hours: Math.round(10 * (spent?.idle ?? 0)) / 10,
    cost: Math.round(100 * (spent?.cost ?? 0)) / 100,
  };
}

function waitsOf(outcomes: readonly Outcome[]): WaitFigures {
  const waits = outcomes.flatMap(({ result, waitMs }) => (result === "served" ? [waitMs] : []));
  waits.sort((a, b) => a - b);
  const count = (result: Outcome["result"]) => outcomes.filter((outcome) => outcome.result === result).length;
  return {
    requests: outcomes.length,
    wait_median: rank(waits, 0.5),
    wait_p95: rank(waits, 0.95),
    refused: count("refused"),
    unanswered: count("waits"),
  };
}

/** The smallest of sorted milliseconds that at least this share does not exceed; seconds. */
export function rank(sorted: readonly number[], share: number): number | null {
  const ms = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  return ms === undefined ? null : Math.round(ms / 100) / 10;
}
