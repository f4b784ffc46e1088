import type {
  Calls,
  CreateOrder,
  DriverContext,
  ExternalId,
  InventoryItem,
  LabelConfig,
  Machine,
  Offers,
  ProbeResult,
  Provider,
  Resource,
  Resources,
  Step,
  StepContext,
  Tag,
} from "@nodeyard/driver";
import type { QemuProviderConfig } from "./config.ts";
import type { HostFolder } from "./edge/host-folder.ts";
import { HostImages } from "./images/store.ts";
import { needOf } from "./machine/amounts.ts";
import { nodeName } from "./names.ts";
import { createSteps, removeSteps } from "./steps.ts";

/** Machines of one folder of this host. It remembers nothing: all there is to know is in the folder. */
export class QemuProvider implements Provider {
  readonly offers: Offers;
  readonly #host: HostFolder;
  readonly #config: QemuProviderConfig;
  readonly #calls: Calls;
  readonly #context: DriverContext;

  constructor(host: HostFolder, config: QemuProviderConfig, calls: Calls, context: DriverContext) {
    this.#host = host;
    this.#config = config;
    this.#calls = calls;
    this.#context = context;
    this.offers = {
      console: { read: (tag, { signal }) => this.#console(tag, signal) },
      images: new HostImages(host, calls),
    };
  }

  create(order: CreateOrder, context: StepContext): AsyncGenerator<Step, Machine, void> {
    const parts = { host: this.#host, config: this.#config, context: this.#context };
    return this.#calls.steps("create", context, (own) => createSteps(parts, order, own));
  }

  remove(tag: Tag, context: StepContext): AsyncGenerator<Step, void, void> {
    return this.#calls.steps("remove", context, (own) => removeSteps(this.#host, tag, own));
  }

  async find(tag: Tag, signal: AbortSignal): Promise<ExternalId | undefined> {
    const name = nodeName(tag);
    return this.#calls.run("find", signal, async () => ((await this.#host.has(name)) ? name : undefined));
  }

  async list(signal: AbortSignal): Promise<readonly Resource[]> {
    return this.#calls.run("list", signal, async () => {
      const [machines, images] = await Promise.all([this.#host.machines(), this.#host.images()]);
      return [...machines, ...images];
    });
  }

  async removeResource(resource: Resource, signal: AbortSignal): Promise<void> {
    await this.#calls.run("removeResource", signal, async (own) => {
      if (resource.tag !== null) await this.#host.remove(nodeName(resource.tag), own);
      else if (resource.imageTag != null) await this.#host.removeImage(resource.imageTag);
    });
  }

  async quota(signal: AbortSignal): Promise<Resources> {
    return this.#calls.run("quota", signal, () => this.#host.quota());
  }

  async need(label: LabelConfig, signal: AbortSignal): Promise<Resources> {
    return this.#calls.run("need", signal, async () => needOf(label));
  }

  inventory(): readonly InventoryItem[] {
    return [];
  }

  async probe(): Promise<ProbeResult> {
    return { alive: false, why: "the qemu driver has no inventory" };
  }

  async close(): Promise<void> {
    this.#calls.close();
    await this.#host.close();
  }

  async #console(tag: Tag, signal: AbortSignal): Promise<string | null> {
    const text = await this.#calls.run("console", signal, () => this.#host.nodes.console(nodeName(tag)));
    return text ?? null;
  }
}
