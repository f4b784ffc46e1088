import { type CreateOrder, type DriverContext, DriverError, type Provider, runSteps } from "@nodeyard/driver";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import {
  AzureDouble,
  type AzureSettings,
  HERE,
  LOCATION,
  SECRET,
  SUBSCRIPTION,
  TENANT,
  wireTo,
} from "../../../../testing/azure/index.ts";
import { type AzureProviderConfig, azureConfig, createAzureDriver } from "../src/index.ts";

export const INSTALLATION = "6a1f6d1e-0f5e-4a62-9d51-6f3f0d8f5b01";
const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const TOP = { username: "debian", pythonPath: "auto", shellType: null };
const KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGFz nodes";

/** A file as `az ad sp create-for-rbac --sdk-auth` writes it. */
export const AUTH = {
  ...{ clientId: "client-1", clientSecret: SECRET, subscriptionId: SUBSCRIPTION, tenantId: TENANT },
  ...{ activeDirectoryEndpointUrl: HERE, resourceManagerEndpointUrl: `${HERE}/` },
};

/** A provider of the file, compiled by the driver; `labels` are over a label `small`. */
export function compile(
  labels: Readonly<Record<string, object>> = { small: {} },
  { pool = {}, provider = {} }: { readonly pool?: object; readonly provider?: object } = {},
): AzureProviderConfig {
  const raw = {
    ...{ name: "azure-west", driver: "azure", location: LOCATION, rate: 0, network: "nodes" },
    ...{ "resource-group": "nodes", "resource-group-location": LOCATION, "auth-path": "/auth.json" },
    "cloud-images": [
      {
        ...{ name: "debian", username: "debian", key: KEY },
        "image-reference": { publisher: "Debian", offer: "debian-12", sku: "12-gen2", version: "latest" },
      },
    ],
    ...provider,
    pools: [
      {
        ...{ name: "main", "max-servers": 1000, ...pool },
        labels: Object.entries(labels).map(([name, label]) => ({
          ...{ name, "hardware-profile": { "vm-size": "Standard_D2s_v5" } },
          ...("diskimage" in label ? {} : { "cloud-image": "debian" }),
          ...label,
        })),
      },
    ],
  };
  const report = ({ path, message }: { path: readonly unknown[]; message: string }) => {
    throw new Error(`${path.join(".")}: ${message}`);
  };
  return azureConfig.load(raw, {
    labels: new Set(Object.keys(labels)),
    diskimages: new Map([["conformance", TOP]]),
    report,
  })!;
}

/** A fixed VHD of so many MiB, of which only the first and a page in the middle of the fifth have data. */
export function vhd(mib: number): Buffer {
  const data = Buffer.alloc((mib << 20) + 512);
  data.fill("data", 0, 1 << 20);
  data.fill("more", (4 << 20) + 4096, (4 << 20) + 5120);
  data.write("conectix", mib << 20);
  return data;
}

/** The driver and a double of Azure in one process, in virtual time. */
export class AzureRig {
  readonly clock = new VirtualClock();
  readonly azure: AzureDouble;
  /** What the driver reads: files by path, and variables. */
  readonly files = new Map([["/auth.json", JSON.stringify(AUTH)]]);
  readonly env: Record<string, string> = {};
  readonly images = new Map<string, Buffer>();

  constructor(settings: Partial<AzureSettings> = {}) {
    this.azure = new AzureDouble(this.clock, settings);
  }

  /** A driver of its own, as another process has. */
  open(config: AzureProviderConfig, more: Partial<DriverContext> = {}): Promise<Provider> {
    const { images } = this;
    const driver = createAzureDriver({
      around: { env: this.env, read: (path) => this.files.get(path) },
      connect: () => wireTo(this.azure),
      password: () => "aA1".padEnd(64, "x"),
      async *openFile(path) {
        yield images.get(path)!;
      },
    });
    return this.drive(
      driver.open(config, {
        ...{ clock: this.clock, random: seededRandom(1), log: quiet, installation: INSTALLATION },
        scan: { scan: () => Promise.reject(new DriverError("timeout", "nothing scans here")) },
        ...more,
      }),
    );
  }

  /** Moves virtual time until `work` has settled. */
  async drive<T>(work: Promise<T>): Promise<T> {
    let settled = false;
    const done = () => {
      settled = true;
    };
    work.then(done, done);
    await this.clock.advance(0);
    for (let step = 0; !settled && step < 20_000; step++) await this.clock.advance(100);
    if (!settled) throw new Error("the work did not end within 2,000 virtual seconds");
    return work;
  }

  order(
    config: AzureProviderConfig,
    label: string,
    node: number,
    more: Partial<CreateOrder> = {},
  ): CreateOrder {
    const pool = config.pools[0]!;
    const nodeId = String(node).padStart(10, "0");
    return {
      tag: { installation: INSTALLATION, provider: config.name, pool: pool.name, nodeId },
      ...{ hostname: `np${nodeId}`, pool, label: pool.labels.get(label)!, az: null },
      ...{ imageExternalId: null, request: REQUEST, attempt: 1 },
      ...more,
    };
  }

  create(provider: Provider, order: CreateOrder) {
    return this.drive(this.launch(provider, order));
  }

  remove(provider: Provider, order: CreateOrder) {
    return this.drive(this.delete(provider, order));
  }

  /** The same, while something else moves the time. */
  launch(provider: Provider, order: CreateOrder) {
    return runSteps((context) => provider.create(order, context), this.#how());
  }

  delete(provider: Provider, { tag }: CreateOrder) {
    return runSteps((context) => provider.remove(tag, context), this.#how());
  }

  /** How the launcher runs steps. */
  #how() {
    const { signal } = new AbortController();
    return { clock: this.clock, signal, externalId: null, save: async () => {} };
  }
}

const REQUEST: CreateOrder["request"] = {
  ...{ id: "100-0000000001", labels: ["small"], requestor: "test", requestorData: null, relativePriority: 0 },
  ...{ eventId: null, createdTime: null, tenantName: "tenant-1" },
};
