import {
  type CreateOrder,
  type ExternalId,
  type Machine,
  type Provider,
  type ProviderConfig,
  runSteps,
} from "@nodeyard/driver";
import { systemClock } from "@nodeyard/runtime";
import { contextOf, type QemuRig } from "./rig.ts";

interface LaunchRig extends Pick<CreateOrder, "pool" | "label"> {
  readonly config: Pick<ProviderConfig, "name">;
}

/** What a launcher does with a provider, one call at a time. */
export class Launches {
  static readonly installation = "6a1f6d1e-0f5e-4a62-9d51-6f3f0d8f5b01";
  readonly #rig: LaunchRig;
  readonly provider: Provider;

  constructor(rig: LaunchRig, provider: Provider) {
    this.#rig = rig;
    this.provider = provider;
  }

  /** Opens the provider as another process would: it shares only the folder with an earlier one. */
  static async open(rig: QemuRig): Promise<Launches> {
    return new Launches(rig, await rig.open(Launches.installation));
  }

  order(nodeId: string, imageExternalId: ExternalId | null = null): CreateOrder {
    const { config, pool, label } = this.#rig;
    return {
      tag: { installation: Launches.installation, provider: config.name, pool: pool.name, nodeId },
      hostname: `np${nodeId}`,
      pool,
      label,
      az: null,
      imageExternalId,
      request: REQUEST,
      attempt: 1,
    };
  }

  create(nodeId: string, imageExternalId: ExternalId | null = null): Promise<Machine> {
    return this.run((context) => this.provider.create(this.order(nodeId, imageExternalId), context));
  }

  /** Makes the machine and returns the names of the steps. */
  async steps(nodeId: string, imageExternalId: ExternalId | null = null): Promise<readonly string[]> {
    const seen: string[] = [];
    const { signal } = new AbortController();
    await runSteps((context) => this.provider.create(this.order(nodeId, imageExternalId), context), {
      clock: systemClock,
      signal,
      externalId: null,
      save: async () => {},
      onStep: ({ step }) => void seen.push(step),
    });
    return seen;
  }

  remove(nodeId: string): Promise<void> {
    return this.run((context) => this.provider.remove(this.order(nodeId).tag, context));
  }

  /** The keys that the machine shows, once it answers. */
  async hostKeys(machine: Machine, timeoutMs = 120_000): Promise<readonly string[]> {
    const { scan } = contextOf(Launches.installation);
    const target = { host: machine.interfaceIp as string, port: machine.connection?.port ?? 22 };
    return (await scan.scan({ ...target, keys: true, timeoutMs })).hostKeys;
  }

  run<T>(start: Parameters<typeof runSteps<T>>[0]): Promise<T> {
    const { signal } = new AbortController();
    return runSteps<T>(start, { clock: systemClock, signal, externalId: null, save: async () => {} });
  }
}

const REQUEST: CreateOrder["request"] = {
  id: "100-0000000001",
  labels: ["vm"],
  requestor: "test",
  requestorData: null,
  relativePriority: 0,
  eventId: null,
  createdTime: null,
  tenantName: null,
};
