import type { BuilderConfig } from "@nodeyard/builder";
import type { LauncherConfig } from "@nodeyard/launcher";
import type { Setting } from "./checks/index.ts";
import { EXPECTED } from "./expected-nodes.ts";
import { fake, IMAGE, type Limits, lab, REUSED, slicer } from "./providers.ts";

export { IMAGE } from "./providers.ts";

/** Clouds, with one provider each. */
export const CLOUDS = ["cloud", "east", "west"] as const;

/** The pool whose nodesets have one zone each. */
export const ZONED = "west/main";
/** The provider whose nodes are slots of backing nodes. */
export const SLICER = "slices";
export const SLOTS = 2;

/** Limits of pools. */
export const LIMITS: ReadonlyMap<string, Limits> = new Map([
  ["cloud/main", { instances: 6 }],
  ["cloud/spare", { instances: 3 }],
  ["east/main", { instances: 4 }],
  // A node has four cores: the second limit is reached first.
  [ZONED, { instances: 5, cores: 16 }],
  ["west/metal", { instances: 3 }],
  [`${SLICER}/main`, { instances: 5 }],
]);

/** Limits of tenants. */
export const TENANT_LIMITS: ReadonlyMap<string, Limits> = new Map([["t1", { instances: 4, cores: 12 }]]);

/** Machines of others at each cloud, which count against its quota. */
export const STRANGERS = 2;
/** What a cloud allows us in all: less than the sum of its pools' limits. */
export const QUOTAS: ReadonlyMap<string, Limits> = new Map([["cloud", { instances: 7 }]]);

/** The cloud's own limit, with the machines of others. */
export function quotaOf(cloud: string): { readonly instances?: number } {
  const ours = QUOTAS.get(cloud)?.instances;
  return ours === undefined ? {} : { instances: ours + STRANGERS };
}

/** Nodes that a provider may launch at once. */
const CONCURRENCY: ReadonlyMap<string, Limits> = new Map([["east", { instances: 3 }]]);

/** Idle nodes to keep, by label. */
const MIN_READY: ReadonlyMap<string, number> = new Map([
  ["small", 1],
  ["large", 1],
]);

/** Of these the spares beyond `MIN_READY` are suspended. */
const SUSPENDED: ReadonlyMap<string, number> = new Map([["small", 1]]);

/** The settings that the checks need. */
export const CHECKED: Setting = {
  pools: LIMITS,
  tenants: TENANT_LIMITS,
  providers: QUOTAS,
  launching: CONCURRENCY,
  slicer: SLICER,
  zoned: ZONED,
  hosts: "lab",
  expected: EXPECTED,
  reused: REUSED,
  minReady: new Map([...MIN_READY].map(([name, nodes]) => [name, nodes + (SUSPENDED.get(name) ?? 0)])),
};

/** Labels of requests, frequent ones more often; no pool has `nowhere`. */
export const WANTED = [
  "small",
  "small",
  "large",
  "large",
  "board",
  "rare",
  "extra",
  "python",
  "doomed",
  "nowhere",
  "slice",
  "slice",
  "slice",
  "slice",
  "zoned",
  "zoned",
  "imaged",
  "offered",
  "offered",
];

/** Slots of static hosts. */
export const BOARDS = 4;

const east = () =>
  fake("east", CONCURRENCY.get("east")?.instances, [
    { name: "main", limits: LIMITS.get("east/main")!, labels: ["rare", "large", "doomed"] },
  ]);

interface Variant {
  readonly east?: boolean;
  readonly extra?: boolean;
  readonly slices?: boolean;
  /** Zones of the pool that has zones. */
  readonly zones?: readonly string[];
}

/**
 * Failed launches per label and hour during the faults. When the budget is used up, requests wait for up to an hour; the operator raises it
 * at the end, so that no run takes that long.
 */
export function budgetOf(seed: number, troubled: boolean): number {
  return troubled && seed % 16 === 5 ? 4 : 60;
}

/** Weights in every third run. Who gives a lease is a client of its own. */
export function sharesOf(seed: number): LauncherConfig["shares"] {
  return seed % 3 === 2 ? { tenants: new Map([["t1", 2]]), clients: new Map() } : undefined;
}

/** A tenant's budget in every eighth run: it is used up during the faults. */
export function spendingOf(seed: number): Setting["budget"] {
  return seed % 8 === 3 ? { tenant: "t1", amount: 0.4, currency: "USD" } : undefined;
}

/** The operator raises it at the end, so that no run takes a month; by much, since a clock that was set days ahead has charged for them. */
export function budgetsOf(seed: number, troubled: boolean): NonNullable<LauncherConfig["budgets"]> {
  const { tenant, amount, currency } = spendingOf(seed) ?? {};
  if (tenant === undefined || amount === undefined || currency === undefined) return new Map();
  return new Map([[tenant, { amount: troubled ? amount : amount * 1_000_000, currency, timezone: "UTC" }]]);
}

/** The smallest possible installation. */
export const ONE_POOL: LauncherConfig = installation([east()]);

/** Configurations that an operator switches between during a run: complete, without a provider, without a label, without a zone. */
export const VARIANTS: readonly LauncherConfig[] = [
  variant({}),
  variant({ east: false }),
  variant({ extra: false }),
  variant({ slices: false }),
  variant({ zones: ["az2"] }),
];

function variant({
  east: withEast = true,
  extra = true,
  slices = true,
  zones = ["az1", "az2"],
}: Variant): LauncherConfig {
  const of = (pool: string) => LIMITS.get(pool)!;
  const providers = [
    fake("cloud", undefined, [
      { name: "main", limits: of("cloud/main"), labels: ["small", "large", ...(extra ? ["extra"] : [])] },
      { name: "spare", limits: of("cloud/spare"), labels: ["small"], priority: 200 },
    ]),
    lab(),
    fake("west", undefined, [
      { name: "main", limits: of(ZONED), labels: ["zoned", "imaged", "offered"], zones },
      { name: "metal", limits: of("west/metal"), labels: ["metal"] },
    ]),
    ...(withEast ? [east()] : []),
    ...(slices ? [slicer(SLICER, of(`${SLICER}/main`), SLOTS)] : []),
  ];
  const labels = new Map(
    [...MIN_READY].map(
      ([name, minReady]) =>
        [name, { name, minReady, maxReadyAgeMs: 600_000, spares: sparesOf(name) }] as const,
    ),
  );
  return installation(providers, labels);
}

function sparesOf(label: string) {
  const min = SUSPENDED.get(label);
  if (min === undefined) return null;
  const others = { max: min, share: 0, times: [], target: null, idleMs: 30_000 };
  return { min, ...others, suspended: true };
}

function installation(
  providers: LauncherConfig["providers"],
  labels: LauncherConfig["labels"] = new Map(),
): LauncherConfig {
  return {
    providers,
    labels,
    tenantLimits: new Map([...TENANT_LIMITS].map(([tenant, limits]) => [tenant, { ...limits }])),
    maxHoldAgeMs: Number.POSITIVE_INFINITY,
  };
}

/** During the faults two of three builds are due by their age; most trials end by their time. */
const REBUILD_MS = 20_000;
const TRIAL = { share: 0.5, launches: 4, maxAgeMs: 60_000 };

/** One image for the provider of the label `imaged`. `lasting`: no build is due by its age. */
export function builderConfig(lasting: boolean): BuilderConfig {
  const image = {
    name: IMAGE,
    username: "zuul",
    pythonPath: "auto",
    shellType: null,
    formats: [],
    keepFormats: [],
    deleteAfterUpload: false,
    elements: [],
    env: {},
    release: "",
    rebuildAgeMs: lasting ? Number.POSITIVE_INFINITY : REBUILD_MS,
    rebuildOnChange: false,
    canary: TRIAL,
    buildTimeoutMs: 60_000,
    paused: false,
    dibCommand: [],
    command: ["build"],
    metadata: {},
  };
  const listed = { paused: false, metadata: {}, own: {} };
  const upload = {
    nameFormat: "{image_name}-{timestamp}",
    postUploadHook: null,
    images: new Map([[IMAGE, listed]]),
  };
  const [provider] = ZONED.split("/");
  return {
    providers: VARIANTS[0]!.providers.filter(({ name }) => name === provider),
    builder: {
      imagesDir: "/images",
      elementsDir: null,
      logDir: "/logs",
      logRetention: 1,
      images: new Map([[IMAGE, image]]),
      uploads: new Map([[provider!, upload]]),
    },
  };
}
