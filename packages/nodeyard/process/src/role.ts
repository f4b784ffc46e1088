import type { Audit, ConfigPlan, Known, Readiness, Work } from "@nodeyard/api";
import type { Config } from "@nodeyard/config";
import type { StatsdSample } from "@nodeyard/legacy";
import type { Gauge, HistoryPoint } from "@nodeyard/metrics";
import type {
  BuildLogPart,
  BuildLogRange,
  LauncherUse,
  ProviderMachines,
  TenantUse,
} from "@nodeyard/operations";
import type { Row } from "@nodeyard/operations/listing";
import type { Machine } from "@nodeyard/telemetry/machine";
import type { Tree } from "@nodeyard/tree";
import { whyAway } from "./open-tree.ts";
import type { Answers, SurveyOf } from "./surveys.ts";

/**
 * A launcher or a builder that runs in a process and reports its health and figures. The front asks it for each request, so all
 * but the promises are answered from memory.
 */
export interface Role {
  readonly known: Known;
  /** Whether it does its work now: false while the tree is away or not read yet. For load balancers and supervisors that wait. */
  readiness(): Readiness;
  /** What does not go on, and only a restart would help; undefined: nothing. */
  stuck(): string | undefined;
  /** Builds and uploads under way; absent: it makes none. */
  readonly work?: () => readonly Work[];
  /** As the builder has it; absent: it builds nothing. */
  readonly buildLog?: (range: BuildLogRange, waitMs: number) => Promise<BuildLogPart | undefined>;
  /** Absent: it keeps no journal. */
  readonly audit?: Audit;
  /** Absent: it serves none. */
  readonly providers?: () => readonly LauncherUse[];
  /** What tenants have, wait for and have spent; absent: it does not know. */
  readonly tenants?: () => readonly TenantUse[];
  /** Absent: it serves none. After `withinMs` milliseconds there are none. */
  readonly sliverMachines?: (withinMs?: number) => Promise<readonly ProviderMachines[]>;
  /** What a configuration would do with the demand in the journal; absent: it keeps none. Never rejects. */
  readonly plan?: (text: string, days: number) => Promise<ConfigPlan>;
  /** What it finds in the clouds of its providers, or of one; absent: it serves none. Rejects with ProcessError. */
  readonly survey?: (what: SurveyOf, only: string | undefined) => Promise<Answers<Row>>;
  /** The last day in numbers; absent: it keeps none. */
  readonly history?: () => readonly HistoryPoint[];
  /** For Prometheus, at each request for the page. */
  gauges(): readonly Gauge[];
  /** Statsd metrics of this process alone. */
  samples(): readonly StatsdSample[];
  /** Statsd metrics that all processes share, sent by the elected one; absent: none. `leading` may change at any time. */
  readonly shared?: { readonly leading: () => boolean; readonly gauges: () => readonly StatsdSample[] };
  /** Puts a changed configuration into force. Rejects where it cannot be applied. */
  reconfigure(config: Config): Promise<void>;
  /** Ends it in good order; work that takes longer than `graceMs` is given up, as after a crash. */
  close(graceMs: number): Promise<void>;
}

/** Whether the process may act on the tree now: the session is connected, and has been confirmed within its time. */
export function treeReadiness({
  tree,
  machine,
}: {
  readonly tree: Tree;
  readonly machine: Machine;
}): Readiness {
  const session = tree.session();
  const { state, trustedUntil } = session;
  if (state !== "connected")
    return { ready: false, why: `the connection with the tree is ${state}${whyAway(session)}` };
  const trusted = machine.clock.monotonic() < trustedUntil;
  return { ready: trusted, why: trusted ? "" : "the tree has not answered for too long" };
}
