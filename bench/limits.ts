import type { Figure } from "./lib/scenario.ts";

export interface Limit {
  readonly name: string;
  /** The judged figure: the last one with these fields. */
  readonly of: Readonly<Record<string, string | number>>;
  readonly field: string;
  /** A field of another figure to compare with, in place of a number alone. */
  readonly against?: Readonly<Record<string, string | number>>;
  readonly most?: number;
  readonly least?: number;
}

export interface Verdict {
  readonly limit: string;
  readonly value: number;
  readonly allowed: string;
  readonly ok: boolean;
}

/**
 * An event costs what it changes, so a hundred times as much state may not show; 1.5 leaves room for caches that no longer hold all of it.
 * Finding a request's place in the queue takes twice as many comparisons among 18,000 as among 180 (14 against 7), and each reads a request
 * that is in no cache; cancelling a request costs hardly anything else.
 */
const PLANNING: Readonly<Record<string, number>> = {
  "request new": 2.5,
  "request gone": 4,
  "node freed": 1.5,
  "node ready": 1.5,
  fulfilled: 1.5,
  "component change": 1.5,
};

/** What a release must achieve. Nodepool's launcher made 37 requests per second at 14 to 24 ms of CPU. */
export const LIMITS: readonly Limit[] = [
  {
    name: "idle round trips until fulfilled",
    of: { scenario: "operations", case: "idle" },
    field: "roundTrips",
    most: 7,
  },
  {
    name: "idle latency, against seven raw round trips",
    of: { scenario: "latency" },
    field: "ratio",
    most: 2,
  },
  {
    name: "1,000 at once, share of the floor",
    of: { scenario: "throughput", requests: 1_000 },
    field: "ratio",
    least: 0.4,
  },
  {
    name: "1,000 at once, CPU ms per request",
    of: { scenario: "throughput", requests: 1_000 },
    field: "cpuMsPerRequest",
    most: 1.5,
  },
  {
    name: "10,000 at once, CPU per request against 1,000",
    of: { scenario: "throughput", requests: 10_000 },
    field: "cpuMsPerRequest",
    against: { scenario: "throughput", requests: 1_000 },
    most: 1.3,
  },
  ...["at once", "lock parents exist", "at once, with limits"].flatMap((which): Limit[] => [
    {
      name: `packets per request, ${which}`,
      of: { scenario: "operations", case: which },
      field: "packetsPerRequest",
      most: 10,
    },
    {
      name: `sub-operations per request, ${which}`,
      of: { scenario: "operations", case: which },
      field: "subOperationsPerRequest",
      // Two of them demand, at the record and at the lock of each new node, that its request is still ours.
      most: 22,
    },
  ]),
  {
    name: "a slot of an existing backing node, against an idle node",
    of: { scenario: "metastatic", case: "in turn" },
    field: "ratio",
    most: 2,
  },
  {
    name: "slots given twice",
    of: { scenario: "metastatic", case: "at once" },
    field: "slotsGivenTwice",
    most: 0,
  },
  {
    name: "full tree, CPU against empty",
    of: { scenario: "full-tree", nodes: 5_000 },
    field: "cpuRatio",
    most: 1.2,
  },
  {
    name: "full tree, packets against empty",
    of: { scenario: "full-tree", nodes: 5_000 },
    field: "packetRatio",
    most: 1.2,
  },
  {
    name: "full tree, sub-operations against empty",
    of: { scenario: "full-tree", nodes: 5_000 },
    field: "subOperationRatio",
    most: 1.2,
  },
  ...[1_000, 10_000, 100_000].map(
    (nodes): Limit => ({
      name: `${nodes} nodes, latency of a new request against an empty tree`,
      of: { scenario: "scale", nodes },
      field: "latencyRatio",
      most: 1.5,
    }),
  ),
  ...[10_000, 100_000].map(
    (nodes): Limit => ({
      name: `${nodes} nodes, whatever grew most since a tenth of them, against ten times`,
      of: { scenario: "scale", nodes },
      field: "mostGrowth",
      most: 1.2,
    }),
  ),
  {
    name: "start on a full tree, against reading it once",
    of: { scenario: "startup", nodes: 5_000 },
    field: "ratio",
    most: 3,
  },
  {
    name: "nodeyard --version, against node -e 0",
    of: { scenario: "commands", command: "--version" },
    field: "ratio",
    most: 2.5,
  },
  {
    name: "nodeyard list on a running up, against node -e 0",
    of: { scenario: "commands", command: "list" },
    field: "ratio",
    most: 5,
  },
  {
    name: "page, ms until the first rows of 5,000 nodes",
    of: { scenario: "page", measure: "first rows" },
    field: "firstRowMs",
    most: 1_000,
  },
  {
    // 50 of the 60 frames a second that a screen shows, wherever the machine can draw an empty page so often.
    name: "page, frames while scrolling, against an empty page",
    of: { scenario: "page", measure: "scrolling" },
    field: "ratio",
    least: 0.833,
  },
  {
    name: "page, memory at the end against the second quarter of the time",
    of: { scenario: "page", measure: "memory" },
    field: "ratio",
    most: 1.1,
  },
  {
    name: "20 open pages, CPU per request against none",
    of: { scenario: "page", measure: "cost", pages: 20 },
    field: "cpuRatio",
    most: 1.1,
  },
  ...["gitea", "github"].map(
    (system): Limit => ({
      name: `${system}, from a queued job to its start, against a runner without a pool`,
      of: { scenario: "connectors", system },
      field: "ratio",
      most: 1.3,
    }),
  ),
  {
    name: "a node of Zuul is ready, against a turn of zuul-launcher's loop",
    of: { scenario: "connectors", system: "zuul" },
    field: "ratio",
    most: 1,
  },
  ...Object.entries(PLANNING).map(
    ([event, most]): Limit => ({
      name: `planning, ${event}: 20,000 requests and 10,000 nodes against 200 and 100`,
      of: { scenario: "planning", event },
      field: "ratio",
      most,
    }),
  ),
  ...Object.keys(PLANNING).map(
    (event): Limit => ({
      name: `planning, ${event}: ten offerings a label against one`,
      of: { scenario: "planning", event },
      field: "tenOfferingsRatio",
      most: 1.1,
    }),
  ),
];

/** Verdicts on the limits whose figures were measured; a figure without its field is a miss. */
export function judge(figures: readonly Figure[], limits: readonly Limit[] = LIMITS): Verdict[] {
  return limits.flatMap((limit) => {
    const figure = find(figures, limit.of);
    const base = limit.against === undefined ? undefined : find(figures, limit.against);
    if (figure === undefined || (limit.against !== undefined && base === undefined)) return [];
    const value = Number(figure[limit.field]) / (base === undefined ? 1 : Number(base[limit.field]));
    const ok =
      value <= (limit.most ?? Number.POSITIVE_INFINITY) && value >= (limit.least ?? Number.NEGATIVE_INFINITY);
    const allowed = limit.most === undefined ? `at least ${limit.least}` : `at most ${limit.most}`;
    return [{ limit: limit.name, value: Number(value.toFixed(3)), allowed, ok }];
  });
}

function find(
  figures: readonly Figure[],
  fields: Readonly<Record<string, string | number>>,
): Figure | undefined {
  return figures.findLast((figure) =>
    Object.entries(fields).every(([name, value]) => figure[name] === value),
  );
}
