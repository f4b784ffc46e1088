import {
  type CreateOrder,
  type DriverContext,
  DriverError,
  type HttpRequest,
  isStream,
  type Provider,
  type RunOptions,
  runSteps,
  type Step,
  type StepContext,
} from "@nodeyard/driver";
import { keepSecret, seededRandom, sleep, systemClock, VirtualClock } from "@nodeyard/runtime";
import { GceCloud, type GceSettings } from "../../../../testing/gce/index.ts";
import { createGceDriver, type GceProviderConfig, gceConfig } from "../src/index.ts";

export const INSTALLATION = "6a1f6d1e-0f5e-4a62-9d51-6f3f0d8f5b01";
export const TOKEN = "ya29.token-of-the-double-of-google";
const quiet = { debug() {}, info() {}, warn() {}, error() {} };

/** A provider of the file, compiled by the driver; `labels` are over a label `small` of e2-standard-4. */
export function compile(
  labels: Readonly<Record<string, object>> = { small: {} },
  { pool = {}, provider = {} }: { readonly pool?: object; readonly provider?: object } = {},
): GceProviderConfig {
  const raw = {
    ...{
      name: "gcp-west",
      driver: "gce",
      project: "ci-project-1",
      region: "us-central1",
      zone: "us-central1-a",
    },
    rate: 0,
    "cloud-images": [
      {
        name: "debian",
        "image-project": "debian-cloud",
        "image-family": "debian-12",
        username: "ci",
        key: "ssh-ed25519 AAAA",
      },
    ],
    ...provider,
    pools: [
      {
        name: "main",
        labels: Object.entries(labels).map(([name, label]) => ({
          ...{ name, "instance-type": "e2-standard-4" },
          ...("diskimage" in label ? {} : { "cloud-image": "debian" }),
          ...label,
        })),
        ...pool,
      },
    ],
  };
  const report = ({
    path,
    message,
    severity,
  }: {
    path: readonly unknown[];
    message: string;
    severity?: string;
  }) => {
    if (severity !== "warning") throw new Error(`${path.join(".")}: ${message}`);
  };
  const login = { username: "debian", pythonPath: "auto", shellType: null };
  const diskimages = new Map([["conformance", login]]);
  return gceConfig.load(raw, { labels: new Set(Object.keys(labels)), diskimages, report })!;
}

/** The driver at a double of Google Cloud in this process, in virtual time, and calls as the launcher makes them. */
export class GceRig {
  readonly clock = new VirtualClock();
  readonly cloud = new GceCloud(this.clock);
  readonly files = new Map<string, Uint8Array>();
  readonly #opened: Provider[] = [];
  #seed = 7;

  constructor(settings: Partial<GceSettings> = {}) {
    this.cloud.set(settings);
    keepSecret(TOKEN);
  }

  /** A driver of its own, as another process has. */
  open(config = compile(), context: Partial<DriverContext> = {}): Promise<Provider> {
    return this.drive(this.opening(config, context));
  }

  /** The same while time is moved by another call. */
  async opening(config: GceProviderConfig, context: Partial<DriverContext> = {}): Promise<Provider> {
    const { clock, cloud, files } = this;
    const driver = createGceDriver({
      connect: () => ({
        async send({ method, url, headers, body, signal }: HttpRequest) {
          const bytes = await joined(body);
          return cloud.answer({ method, url, headers, body: bytes }, signal);
        },
        close: async () => {},
      }),
      logIn: async () => ({ token: TOKEN, end: clock.now() + 3_600_000 }),
      openFile: async function* (path) {
        yield files.get(path)!;
      },
    });
    const handles = {
      ...{ clock, random: seededRandom(this.#seed++), log: quiet, installation: INSTALLATION },
      scan: { scan: () => Promise.reject(new DriverError("timeout", "nothing scans here")) },
      ...context,
    };
    const provider = await driver.open(config, handles);
    this.#opened.push(provider);
    return provider;
  }

  order(config: GceProviderConfig, nodeId: string, more: Partial<CreateOrder> = {}): CreateOrder {
    const [pool] = config.pools;
    return {
      tag: { installation: INSTALLATION, provider: config.name, pool: pool!.name, nodeId },
      ...{ hostname: `np${nodeId}`, pool: pool!, label: [...pool!.labels.values()][0]!, az: null },
      ...{ imageExternalId: null, request: REQUEST, attempt: 1, ...more },
    };
  }

  create(provider: Provider, order: CreateOrder, onStep?: (step: Step) => void) {
    return this.drive(this.run((context) => provider.create(order, context), null, onStep));
  }

  remove(provider: Provider, { tag }: CreateOrder, externalId: CreateOrder["imageExternalId"] = null) {
    return this.drive(this.run((context) => provider.remove(tag, context), externalId));
  }

  run<T>(
    start: (context: StepContext) => AsyncGenerator<Step, T, void>,
    externalId: CreateOrder["imageExternalId"],
    onStep: (step: Step) => void = () => {},
    save: RunOptions["save"] = async () => {},
  ): Promise<T> {
    const { signal } = new AbortController();
    return runSteps(start, { clock: this.clock, signal, externalId, save, onStep });
  }

  /** Moves virtual time until `work` has settled. `compresses`: zlib works on threads of its own, which need real time. */
  async drive<T>(work: Promise<T>, compresses = false): Promise<T> {
    let settled = false;
    const done = () => {
      settled = true;
    };
    work.then(done, done);
    await this.clock.advance(0);
    for (let step = 0; !settled && step < 200_000; step++) {
      await this.clock.advance(50);
      if (compresses) await sleep(systemClock, 1);
    }
    if (!settled) throw new Error("the work did not end within 10,000 virtual seconds");
    return work;
  }

  async stop(): Promise<void> {
    for (const provider of this.#opened.splice(0)) await provider.close();
    // Nothing that the driver sent, and nothing that the double answered, was other than Google's documents say.
    if (this.cloud.violations.length > 0) throw new Error(this.cloud.violations.join("\n"));
  }
}

async function joined(body: HttpRequest["body"]): Promise<Uint8Array> {
  if (!isStream(body)) return Buffer.from(body ?? "");
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts);
}

const REQUEST: CreateOrder["request"] = {
  ...{ id: "100-0000000001", labels: ["small"], requestor: "test", requestorData: null, relativePriority: 0 },
  ...{ eventId: null, createdTime: null, tenantName: "tenant-1" },
};
