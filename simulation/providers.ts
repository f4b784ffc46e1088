import type { ProviderConfig } from "@nodeyard/driver";
import { fakeConfig } from "@nodeyard/driver-fake";
import { metastaticDriver } from "@nodeyard/driver-metastatic";
import { staticConfig } from "@nodeyard/driver-static";
import type { Setting } from "./checks/index.ts";

export interface FakePool {
  readonly name: string;
  readonly limits: Limits;
  readonly labels: readonly string[];
  readonly priority?: number;
  readonly zones?: readonly string[];
}

export interface Limits {
  readonly instances: number;
  readonly cores?: number;
}

/** The diskimage of the label `imaged`. */
export const IMAGE = "noble";
export const KNOWN: ReadonlySet<string> = new Set(
  "small large board rare extra doomed metal slice zoned imaged offered".split(" "),
);

/** What the label `offered` is bought as, from the best to the worst: by weight, then by price. Only the second is sold in one zone. */
const OFFERINGS = [
  { "flavor-name": "spot" },
  { "flavor-name": "fixed", zone: "az2" },
  { "flavor-name": "wide", "min-ram": 16_384 },
];
const PRICES = {
  ...{ spot: 0.03, fixed: 0.1, wide: 0.2 },
  // A cent a second.
  ...{ small: 36, large: 36, rare: 36, extra: 36, zoned: 36, imaged: 36 },
};

/** Labels whose nodes are used again. */
export const REUSED: NonNullable<Setting["reused"]> = new Map([
  ["large", { times: 2, forAll: false }],
  ["zoned", { times: 1, forAll: true }],
]);

/** Login of the cloud image. */
const CLOUD_IMAGE = { username: "ci", "python-path": "/usr/bin/python3", "connection-port": 2022 };
/** Attributes of all nodes of clouds; slots add theirs. */
export const ATTRIBUTES = { executor: "east" };
export const SLOT_ATTRIBUTES = { sliced: true };

const HOSTS = ["10.0.0.1", "10.0.0.2"];

/** Machines of the label `doomed` can never be created, as with an image that does not boot. */
export function fake(
  name: string,
  concurrency: number | undefined,
  pools: readonly FakePool[],
): ProviderConfig {
  const config = compiled(
    fakeConfig.load(
      {
        name,
        driver: "fake",
        "launch-retries": 3,
        "launch-timeout": 30,
        ...(concurrency === undefined ? {} : { "max-concurrency": concurrency }),
        prices: PRICES,
        "cloud-images": [{ name: "image", ...CLOUD_IMAGE }],
        diskimages: [{ name: IMAGE }],
        pools: pools.map(({ limits, labels, zones, ...pool }) => ({
          ...pool,
          "max-servers": limits.instances,
          "node-attributes": ATTRIBUTES,
          ...(limits.cores === undefined ? {} : { "max-cores": limits.cores }),
          ...(zones === undefined ? {} : { "availability-zones": zones }),
          labels: labels.map((label) => ({
            name: label,
            ...(label === "imaged" ? { diskimage: IMAGE } : { "cloud-image": "image" }),
            "flavor-name": "Fake Flavor",
            ...(REUSED.has(label) && {
              reuse: {
                ...{ check: ["check"], "check-timeout": 5, hours: 1, idle: 20 },
                times: REUSED.get(label)!.times,
                for: REUSED.get(label)!.forAll ? "all" : "same",
              },
            }),
            // A configuration with one zone does not sell the others.
            ...(label === "offered" && {
              offerings: OFFERINGS.filter(({ zone = "az2" }) => zones?.includes(zone) !== false),
            }),
          })),
        })),
      },
      context,
    ),
  );
  for (const pool of config.pools) {
    const doomed = pool.labels.get("doomed");
    if (doomed !== undefined)
      Object.assign(doomed.own as object, { imageProperties: { SHOULD_FAIL: "true" } });
  }
  return config;
}

/** Hosts of two slots each. */
export function lab(): ProviderConfig {
  const nodes = HOSTS.map((name) => ({
    name,
    labels: ["board"],
    "host-key-checking": false,
    "max-parallel-jobs": 2,
  }));
  return compiled(
    staticConfig.load({ name: "lab", driver: "static", pools: [{ name: "main", nodes }] }, context),
  );
}

/** Provides slots on nodes of the label `metal`. */
export function slicer(name: string, limits: Limits, slots: number): ProviderConfig {
  const label = {
    name: "slice",
    "backing-label": "metal",
    "max-parallel-jobs": slots,
    "grace-time": 5,
    "max-age": 90,
  };
  const pools = [
    { name: "main", "max-servers": limits.instances, labels: [label], "node-attributes": SLOT_ATTRIBUTES },
  ];
  const fields = { "launch-timeout": 120, "launch-retries": 3 };
  return compiled(metastaticDriver.config.load({ name, driver: "metastatic", ...fields, pools }, context));
}

const context: Parameters<typeof fakeConfig.load>[1] = {
  labels: KNOWN,
  diskimages: new Map([[IMAGE, { username: "zuul", pythonPath: "auto", shellType: null }]]),
  report: ({ severity, message }) => {
    if (severity === "error") throw new Error(`the simulation's own configuration does not load: ${message}`);
  },
};

function compiled(config: ProviderConfig | undefined): ProviderConfig {
  if (config === undefined) throw new Error("the simulation's own configuration does not load");
  return config;
}
