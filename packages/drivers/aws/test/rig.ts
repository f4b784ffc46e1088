import { type CreateOrder, type DriverContext, DriverError, type Provider, runSteps } from "@nodeyard/driver";
import { openFile } from "@nodeyard/driver/http";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { type AwsServer, type AwsSite, startAws } from "../../../../testing/aws/index.ts";
import { type AwsProviderConfig, awsConfig, createAwsDriver, sdk } from "../src/index.ts";

export const INSTALLATION = "6a1f6d1e-0f5e-4a62-9d51-6f3f0d8f5b01";
/** The top-level diskimages of these tests. */
const TOP = new Map(
  ["debian", "conformance"].map((name) => [
    name,
    { username: "debian", pythonPath: "auto", shellType: null },
  ]),
);
const quiet = { debug() {}, info() {}, warn() {}, error() {} };

/** What the driver signs with. */
export const SECRETS = {
  accessKeyId: "testing",
  secretAccessKey: "testing/SECRET+KEY",
  sessionToken: "testing/SESSION+TOKEN==",
};

/** The SDK at another endpoint, with keys of its own and a time limit of an attempt. */
export function sdkAt(endpoint: string, tryMs: number): typeof sdk {
  const limits = { requestTimeout: tryMs, socketTimeout: tryMs };
  return {
    ...sdk,
    credentials: async () => ({
      ...(await sdk.credentials()),
      defaultProvider: () => Object.assign(async () => SECRETS, {}),
    }),
    connectionOf: async (profile, service, how) => ({
      ...(await sdk.connectionOf(profile, service, { ...how, ...limits })),
      endpoint,
    }),
  };
}

/** Handles of a driver on the machine's own clock. */
export function contextOf(installation = INSTALLATION, more: Partial<DriverContext> = {}): DriverContext {
  return {
    clock: systemClock,
    random: systemRandom,
    log: quiet,
    scan: { scan: () => Promise.reject(new DriverError("timeout", "nothing scans here")) },
    installation,
    ...more,
  };
}

/** A provider of the file, compiled by the driver; `labels` are over a label `small` of t3.medium. */
export function compile(
  site: AwsSite,
  labels: Readonly<Record<string, object>> = { small: {} },
  { pool = {}, provider = {} }: { readonly pool?: object; readonly provider?: object } = {},
): AwsProviderConfig {
  const raw = {
    name: "ec2-us-west-2",
    driver: "aws",
    "region-name": site.region,
    rate: 0,
    "cloud-images": [{ name: "ubuntu", "image-id": site.images[0], username: "ubuntu" }],
    ...provider,
    pools: [
      {
        name: "main",
        "security-group-id": site.securityGroup,
        "subnet-id": Object.values(site.subnets)[0],
        labels: Object.entries(labels).map(([name, label]) => ({
          name,
          "cloud-image": "ubuntu",
          "key-name": site.key,
          ...("fleet" in label ? {} : { "instance-type": "t3.medium" }),
          ...label,
        })),
        ...pool,
      },
    ],
  };
  const report = ({ path, message }: { path: readonly unknown[]; message: string }) => {
    throw new Error(`${path.join(".")}: ${message}`);
  };
  return awsConfig.load(raw, {
    labels: new Set(Object.keys(labels)),
    diskimages: TOP,
    report,
  })!;
}

/** The driver at a double of AWS, and calls as the launcher makes them. */
export class AwsRig {
  readonly server: AwsServer;
  readonly site: AwsSite;
  readonly #opened: Provider[] = [];

  constructor(server: AwsServer, site: AwsSite) {
    this.server = server;
    this.site = site;
  }

  static async start(): Promise<AwsRig> {
    const server = await startAws();
    return new AwsRig(server, await server.site());
  }

  /** What a client of the SDK needs to come here. */
  get client() {
    const credentials = async () => SECRETS;
    return { endpoint: this.server.url, credentials };
  }

  /** A driver of its own, as another process has. */
  async open(config: AwsProviderConfig, context = contextOf()): Promise<Provider> {
    const driver = createAwsDriver({ sdk: sdkAt(this.server.url, 10_000), openFile });
    const provider = await driver.open(config, context);
    this.#opened.push(provider);
    return provider;
  }

  order(
    config: AwsProviderConfig,
    label: string,
    nodeId: string,
    more: Partial<CreateOrder> = {},
  ): CreateOrder {
    const pool = config.pools[0]!;
    return {
      tag: { installation: INSTALLATION, provider: config.name, pool: pool.name, nodeId },
      hostname: `np${nodeId}`,
      pool,
      label: pool.labels.get(label)!,
      az: pool.availabilityZones[0] ?? null,
      imageExternalId: null,
      request: REQUEST,
      attempt: 1,
      ...more,
    };
  }

  create(provider: Provider, order: CreateOrder, saved: unknown[] = []) {
    return runSteps((context) => provider.create(order, context), {
      clock: systemClock,
      signal: new AbortController().signal,
      externalId: null,
      save: async (id) => void saved.push(id),
    });
  }

  remove(provider: Provider, { tag }: CreateOrder, externalId: CreateOrder["imageExternalId"] = null) {
    return runSteps((context) => provider.remove(tag, context), {
      clock: systemClock,
      signal: new AbortController().signal,
      externalId,
      save: async () => {},
    });
  }

  suspend({ offers }: Provider, { tag }: CreateOrder) {
    return runSteps((context) => offers!.suspension!.suspend(tag, context), AS_STORED);
  }

  wake({ offers }: Provider, order: CreateOrder) {
    return runSteps((context) => offers!.suspension!.wake(order, context), AS_STORED);
  }

  async closeProviders(): Promise<void> {
    for (const provider of this.#opened.splice(0)) await provider.close();
  }

  async stop(): Promise<void> {
    await this.closeProviders();
    await this.server.close();
  }
}

/** Of a run whose record has no id yet. */
const AS_STORED = {
  clock: systemClock,
  signal: new AbortController().signal,
  externalId: null,
  save: async () => {},
};

const REQUEST: CreateOrder["request"] = {
  id: "100-0000000001",
  labels: ["small"],
  requestor: "test",
  requestorData: null,
  relativePriority: 0,
  eventId: null,
  createdTime: null,
  tenantName: "tenant-1",
};
