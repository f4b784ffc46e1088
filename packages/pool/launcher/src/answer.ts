import type { About, ConsoleEnd, PoolOutlook, ProviderUse, Testimony, UnderWay } from "@nodeyard/asking";
import { type Place, type Price, placeText } from "@nodeyard/driver";
import { costOf, decodeLease, leaseIdOf, leasePath, type NodeRecord, placeOf } from "@nodeyard/model";
import { type Durations, isElsewhere, type Outlook, type TenantUse, type Verdict } from "@nodeyard/scheduler";
import { type History, noHistory, type Subject } from "@nodeyard/telemetry";
import { type NodeEntry, poolKey, type RequestEntry, type View } from "@nodeyard/view";
import type { StepUnderWay } from "./nodes/handles.ts";
import { sumOf } from "./providers/prices.ts";
import type { ClosedProvider } from "./providers/served.ts";
import type { Timings } from "./timings.ts";

/** The parts of a launcher from which `answer` answers. All but `history`, `remarks` and `console` read memory only. */
export interface Sources {
  readonly view: View;
  readonly timings: Timings;
  /** Of nodes of a provider; Infinity: they never expire, or another launcher serves the provider. */
  maxHoldAgeMs(provider: string | null): number;
  /** Where an open provider sees machines; undefined: it is not open here, or its machines can be nowhere else. */
  place(provider: string): Place | undefined;
  /** What the provider's machines say of the node now; soon, and never rejects. */
  remarks(provider: string | null, node: string): Promise<readonly string[]>;
  /** Of a node's machine as it is now; undefined: another launcher serves its provider. Never rejects. */
  console(record: NodeRecord): Promise<ConsoleEnd | undefined>;
  /** By node id; nodes of which no step of a driver runs here are absent. */
  readonly stepsUnderWay: ReadonlyMap<string, StepUnderWay>;
  /** Tree time, milliseconds. */
  now(): number;
  /** Why the request waits; undefined: it does not wait here. */
  verdict(request: string): Verdict | undefined;
  /** What each pool of this launcher would do for the request now, with a forecast where `durations` allow one. */
  outlooks(request: RequestEntry, durations: Durations): readonly Outlook[];
  /** The same for a request that nobody has made yet. */
  outlooksOfLabel(label: string, durations: Durations): readonly Outlook[];
  /** Providers that are not served as they are configured, with the error. */
  closed(): readonly ClosedProvider[];
  /** All configured providers, with their use of limits. */
  providers(): readonly ProviderUse[];
  /** What tenants and their clients have and wait for. */
  tenants(): readonly TenantUse[];
  /** What an hour of a node of the label costs in a pool, by its key; undefined: that is not known. */
  price(pool: string, label: string): Price | undefined;
  /** Undefined: this process keeps no journal. */
  readonly history?: ((subject: Subject) => Promise<History>) | undefined;
}

/**
 * All that this launcher knows of a request, a node, a lease's request, a label, or a provider. Called by `Answerer` for each question
 * that another process puts into the tree. Facts that are not known here are empty or null, so that the asker can merge the answers of several
 * launchers.
 */
export async function answer(sources: Sources, about: About): Promise<Testimony> {
  const [{ events, problem }, remarks, end] = await Promise.all([
    sources.history?.(about) ?? noHistory("this process keeps no journal"),
    remarksOf(sources, about.node),
    consoleOf(sources, about.console),
  ]);
  const request = about.request === undefined ? undefined : sources.view.requests.byId.get(about.request);
  // An ended request waits for nothing, and no pool would serve it.
  const open = request !== undefined && ["requested", "pending"].includes(request.record.state);
  const verdict = open ? sources.verdict(request.id) : undefined;
  return {
    wait: verdict === undefined ? null : { ...verdict, nextTry: verdict.nextTry ?? null },
    pools: outlooksFor(sources, open ? request : undefined, about.label, verdict),
    underWay: stepsOf(sources, about),
    events: [...events],
    problem,
    ...holdOf(sources, about.node),
    ...elsewhereOf(sources, about.node),
    ...(remarks.length > 0 && { remarks: [...remarks] }),
    ...(end !== undefined && { console: end }),
    ...(about.provider !== undefined && {
      providers: sources.providers().filter(({ name }) => name === about.provider),
    }),
    ...(about.tenants === true && { tenants: [...sources.tenants()] }),
  };
}

async function remarksOf({ view, remarks }: Sources, node = ""): Promise<readonly string[]> {
  const record = view.nodes.byId.get(node)?.record;
  return record === undefined ? [] : remarks(record.provider, node);
}

async function consoleOf(sources: Sources, node = ""): Promise<ConsoleEnd | undefined> {
  const record = sources.view.nodes.byId.get(node)?.record;
  return record && sources.console(record);
}

/** How long a node on hold may stay by the configuration; left out where that is for ever or not ours to say. */
function holdOf({ view, maxHoldAgeMs }: Sources, node = ""): Pick<Testimony, "maxHoldAgeMs"> {
  const record = view.nodes.byId.get(node)?.record;
  if (record?.state !== "hold") return {};
  const ms = maxHoldAgeMs(record.provider);
  return Number.isFinite(ms) ? { maxHoldAgeMs: ms } : {};
}

/** Where the node's machine is, unless its provider looks there. */
function elsewhereOf({ view, place }: Sources, node = ""): Pick<Testimony, "elsewhere"> {
  const record = view.nodes.byId.get(node)?.record;
  const here = place(record?.provider ?? "");
  if (record === undefined || here === undefined || !isElsewhere(record, here)) return {};
  return { elsewhere: { place: placeText(placeOf(record)!), now: placeText(here) } };
}

/** Pools that are served, then those of providers that are not. Empty for an ended request, and where no label is asked about. */
function outlooksFor(
  sources: Sources,
  request: RequestEntry | undefined,
  label: string | undefined,
  verdict: Verdict | undefined,
): PoolOutlook[] {
  const labels = request?.record.nodeTypes ?? (label === undefined ? undefined : [label]);
  if (labels === undefined) return [];
  const durations = durationsOf(sources);
  const outlooks =
    request === undefined
      ? sources.outlooksOfLabel(labels[0]!, durations)
      : sources.outlooks(request, durations);
  const open = outlooks.map(({ forecast, ...outlook }): PoolOutlook => {
    // Since when it is made stands in the verdict of the request.
    const since = outlook.outlook === "serves" ? (verdict?.since ?? null) : outlook.since;
    const cost = sumOf(labels.map((label) => sources.price(outlook.pool, label)));
    const facts = cost === null ? outlook.facts : { ...outlook.facts, cost: costOf(cost) };
    return { ...outlook, facts, since, ...estimateOf(sources, outlook.pool, labels, forecast) };
  });
  const closed = sources.closed().flatMap((provider) => closedPools(provider, labels));
  // A pool that is still served by its former configuration appears once: as the former pool, if that has the labels.
  const before = new Set(open.flatMap(({ pool, outlook }) => (outlook === "lacks" ? [] : [pool])));
  const after = new Map(closed.map((outlook) => [outlook.pool, outlook.facts]));
  return [
    ...open
      .filter(({ pool }) => before.has(pool) || !after.has(pool))
      .map((outlook) => ({
        ...outlook,
        facts: { ...outlook.facts, ...notInForce(after.get(outlook.pool)) },
      })),
    ...closed.filter(({ pool }) => !before.has(pool)),
  ];
}

/** Why the pool is not as it is configured now. */
function notInForce(facts: PoolOutlook["facts"] | undefined): PoolOutlook["facts"] {
  return facts === undefined
    ? {}
    : { new_configuration: "not in force", new_configuration_error: facts.error };
}

/** Pools that are not registered as they are configured, since their provider could not be opened. */
function closedPools(
  { name, isStillServed, pools, code, since, nextTry, error }: ClosedProvider,
  labels: readonly string[],
): PoolOutlook[] {
  return pools
    .filter((pool) => labels.every((label) => pool.labels.has(label)))
    .map((pool) => ({
      pool: poolKey(name, pool.name),
      provider: name,
      outlook: "waits",
      code,
      facts: { error, failing_since: since, ...(isStillServed ? { new_configuration: "not in force" } : {}) },
      since,
      nextTry,
      position: null,
      waiting: 0,
      estimate: null,
      unknown: null,
    }));
}

/** What forecasts are computed from. A lease ends at a known time; of other uses only the durations of former ones are known. */
function durationsOf({ timings, view, now }: Sources): Durations {
  return {
    used: (label) => timings.usesOf(label),
    launched: (pool, label) => timings.launchesOf(pool, label),
    leftOf: ({ record }: NodeEntry) => {
      const id = leaseIdOf(record.requestor);
      const entry = id === undefined ? undefined : view.own.get(leasePath(id));
      if (id === undefined || entry === undefined) return Number.POSITIVE_INFINITY;
      try {
        return Math.max(0, decodeLease(id, entry.data).expires - now());
      } catch {
        // The keeper of leases reports it.
        return Number.POSITIVE_INFINITY;
      }
    },
  };
}

/** The range that contains 80 % of the equally likely times. */
function estimateOf(
  { timings }: Sources,
  pool: string,
  labels: readonly string[],
  forecast: Outlook["forecast"],
): Pick<PoolOutlook, "estimate" | "unknown"> {
  if (forecast === null || typeof forecast === "string") return { estimate: null, unknown: forecast };
  // The forecast is sorted, shortest first.
  const part = (share: number) => Math.round(forecast[Math.floor(share * (forecast.length - 1))]!);
  const each = (known: (label: string) => readonly number[]) =>
    Math.min(...labels.map((label) => known(label).length));
  return {
    estimate: {
      likelyMs: part(0.5),
      fromMs: part(0.1),
      toMs: part(0.9),
      launches: each((label) => timings.launchesOf(pool, label)),
      uses: each((label) => timings.usesOf(label)),
    },
    unknown: null,
  };
}

/** Driver steps of the node that is asked about, or of all nodes of the request. */
function stepsOf({ stepsUnderWay, view }: Sources, { node, request }: About): UnderWay[] {
  const wanted = (id: string) =>
    id === node || (request !== undefined && view.nodes.byId.get(id)?.record.allocatedTo === request);
  return [...stepsUnderWay.values()].filter((step) => wanted(step.node)).map((step) => ({ ...step }));
}
