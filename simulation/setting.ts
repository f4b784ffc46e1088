import type { ProviderConfig } from "@nodeyard/driver";
import { fakeConfig } from "@nodeyard/driver-fake";
import { staticConfig } from "@nodeyard/driver-static";
import type { LauncherConfig } from "nodeyard";

/** Node records per pool, at most. */
export const LIMITS: ReadonlyMap<string, number> = new Map([
  ["cloud/main", 6],
  ["cloud/spare", 3],
  ["east/main", 4],
]);

/** Labels that requests ask for, likelier ones more often; the last is nobody's. */
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
];

const KNOWN = new Set(["small", "large", "board", "rare", "extra", "doomed"]);
const HOSTS = ["10.0.0.1", "10.0.0.2"];

/** What an operator switches between while it runs: all of it, without one provider, without one label. */
export const VARIANTS: readonly LauncherConfig[] = [
  variant({ east: true, extra: true }),
  variant({ east: false, extra: true }),
  variant({ east: true, extra: false }),
];

function variant({ east, extra }: { readonly east: boolean; readonly extra: boolean }): LauncherConfig {
  const providers = [
    fake("cloud", [
      {
        name: "main",
        limit: LIMITS.get("cloud/main")!,
        labels: ["small", "large", ...(extra ? ["extra"] : [])],
      },
      { name: "spare", limit: LIMITS.get("cloud/spare")!, labels: ["small"], priority: 200 },
    ]),
    lab(),
    ...(east
      ? [
          fake("east", [
            { name: "main", limit: LIMITS.get("east/main")!, labels: ["rare", "large", "doomed"] },
          ]),
        ]
      : []),
  ];
  const labels = new Map(
    ["small", "large"].map((name) => [name, { name, minReady: 1, maxReadyAgeMs: 600_000 }] as const),
  );
  const tenantLimits = new Map([["t1", { instances: 4 }]]);
  return { providers, labels, tenantLimits, maxHoldAgeMs: Number.POSITIVE_INFINITY };
}

interface FakePool {
  readonly name: string;
  readonly limit: number;
  readonly labels: readonly string[];
  readonly priority?: number;
}

/** Machines of the label `doomed` can never be made, as of an image that does not boot. */
function fake(name: string, pools: readonly FakePool[]): ProviderConfig {
  const config = compiled(
    fakeConfig.load(
      {
        name,
        driver: "fake",
        "launch-retries": 3,
        "launch-timeout": 30,
        "cloud-images": [{ name: "image" }],
        pools: pools.map(({ limit, labels, ...pool }) => ({
          ...pool,
          "max-servers": limit,
          labels: labels.map((label) => ({
            name: label,
            "cloud-image": "image",
            "flavor-name": "Fake Flavor",
          })),
        })),
      },
      { labels: KNOWN, diskimages: new Map(), report: () => {} },
    ),
  );
  for (const pool of config.pools) {
    const doomed = pool.labels.get("doomed");
    if (doomed !== undefined)
      Object.assign(doomed.own as object, { imageProperties: { SHOULD_FAIL: "true" } });
  }
  return config;
}

function lab(): ProviderConfig {
  const nodes = HOSTS.map((name) => ({
    name,
    labels: ["board"],
    "host-key-checking": false,
    "max-parallel-jobs": 2,
  }));
  return compiled(
    staticConfig.load(
      { name: "lab", driver: "static", pools: [{ name: "main", nodes }] },
      { labels: KNOWN, diskimages: new Map(), report: () => {} },
    ),
  );
}

function compiled(config: ProviderConfig | undefined): ProviderConfig {
  if (config === undefined) throw new Error("the simulation's own configuration does not load");
  return config;
}
