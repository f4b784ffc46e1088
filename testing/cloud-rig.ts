import {
  type CreateOrder,
  type Driver,
  type DriverContext,
  DriverError,
  type HttpRequest,
  isStream,
  type Provider,
  type ProviderConfig,
  type RunOptions,
  runSteps,
  type Step,
  type StepContext,
  type Wire,
} from "@nodeyard/driver";
import { seededRandom, sleep, systemClock, VirtualClock } from "@nodeyard/runtime";
import type { Answer, Arrived } from "./double-server.ts";

export const INSTALLATION = "6a1f6d1e-0f5e-4a62-9d51-6f3f0d8f5b01";
const quiet = { debug() {}, info() {}, warn() {}, error() {} };

/** What a driver's configuration is loaded with; a finding that is more than a warning is thrown. `conformance` is a diskimage. */
export function loadContext(labels: Iterable<string>) {
  const login = { username: "debian", pythonPath: "auto", shellType: null };
  return {
    labels: new Set(labels),
    diskimages: new Map([["conformance", login]]),
    report({ path, message, severity }: { path: readonly unknown[]; message: string; severity?: string }) {
      if (severity !== "warning") throw new Error(`${path.join(".")}: ${message}`);
    },
  };
}

/** Connections to a double in this process. */
export function wireTo(cloud: { answer(arrived: Arrived, signal: AbortSignal): Promise<Answer> }): Wire {
  return {
    stream: () => Promise.reject(new Error("nothing is streamed")),
    async send({ method, url, headers, body, signal }: HttpRequest) {
      return cloud.answer({ method, url, headers, body: await joined(body) }, signal);
    },
    close: async () => {},
  };
}

/** A driver in virtual time, and calls as the launcher makes them. */
export abstract class CloudRig<Config extends ProviderConfig> {
  readonly clock = new VirtualClock();
  readonly files = new Map<string, Uint8Array>();
  readonly #opened: Provider[] = [];
  #seed = 7;

  /** A driver of its own, as another process has. `through`: stands between it and its connections. */
  abstract driver(through?: (wire: Wire) => Wire): Driver<Config>;

  open(config: Config, context: Partial<DriverContext> = {}): Promise<Provider> {
    return this.drive(this.opening(config, context));
  }

  /** The same while time is moved by another call. */
  async opening(config: Config, context: Partial<DriverContext> = {}): Promise<Provider> {
    const provider = await this.driver().open(config, {
      ...{ clock: this.clock, random: seededRandom(this.#seed++), log: quiet, installation: INSTALLATION },
      scan: { scan: () => Promise.reject(new DriverError("timeout", "nothing scans here")) },
      ...context,
    });
    this.#opened.push(provider);
    return provider;
  }

  async *openFile(path: string): AsyncGenerator<Uint8Array> {
    yield this.files.get(path)!;
  }

  /** Of the first label of the first pool. */
  order(config: Config, nodeId: string, more: Partial<CreateOrder> = {}): CreateOrder {
    const pool = more.pool ?? config.pools[0]!;
    return {
      tag: { installation: INSTALLATION, provider: config.name, pool: pool.name, nodeId },
      ...{ hostname: `np${nodeId}`, pool, label: [...pool.labels.values()][0]!, az: null },
      ...{ imageExternalId: null, request: REQUEST, attempt: 1, ...more },
    };
  }

  create(provider: Provider, order: CreateOrder, onStep?: (step: Step) => void) {
    return this.drive(this.run((context) => provider.create(order, context), null, onStep));
  }

  remove(provider: Provider, { tag }: CreateOrder, externalId: CreateOrder["imageExternalId"] = null) {
    return this.drive(this.run((context) => provider.remove(tag, context), externalId));
  }

  suspend({ offers }: Provider, { tag }: CreateOrder) {
    return this.drive(this.run((context) => offers!.suspension!.suspend(tag, context), null));
  }

  wake({ offers }: Provider, order: CreateOrder) {
    return this.drive(this.run((context) => offers!.suspension!.wake(order, context), null));
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
