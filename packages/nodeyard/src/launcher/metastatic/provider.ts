import {
  type CreateOrder,
  DriverError,
  type LabelConfig,
  type Machine,
  type Provider,
  type Resources,
  type Step,
  type StepContext,
  type Tag,
} from "@nodeyard/driver";
import type { HeldNode } from "../fence/records.ts";
import type { MetastaticLabel, MetastaticProvider } from "./config/own.ts";
import type { Slots } from "./slots.ts";

/** What a slot takes: the machine is charged to the backing node's own provider (spec drivers-pools.md 2.4). */
const NEED: Resources = { instances: 1, cores: 0, ram: 0 };

/** Slots as a provider: nothing of it exists outside the tree. */
export class SlotProvider implements Provider {
  readonly #config: MetastaticProvider;
  readonly #slots: Slots;
  readonly #close: () => Promise<void>;

  constructor(config: MetastaticProvider, slots: Slots, close: () => Promise<void>) {
    this.#config = config;
    this.#slots = slots;
    this.#close = close;
  }

  /** `create` under the lock of the node's record, which a slot is written into. */
  launch(order: CreateOrder, step: StepContext, node: HeldNode): AsyncGenerator<Step, Machine, void> {
    return this.#slots.create(order, step, node);
  }

  // biome-ignore lint/correctness/useYield: the contract's form; a slot needs the lock that `launch` is given.
  async *create(): AsyncGenerator<Step, Machine, void> {
    throw new DriverError(
      "fatal",
      `provider ${this.#config.name}: a slot is only given under the lock of its node`,
    );
  }

  remove(tag: Tag, step: StepContext): AsyncGenerator<Step, void, void> {
    return this.#slots.remove(tag, step);
  }

  async find(): Promise<undefined> {
    return undefined;
  }

  async list(): Promise<readonly []> {
    return [];
  }

  async removeResource(): Promise<void> {}

  async quota(): Promise<Resources> {
    return {};
  }

  async need(label: LabelConfig): Promise<Resources> {
    if ((label as MetastaticLabel).own.slots >= 1) return NEED;
    throw new DriverError("configuration", `label ${label.name} has no slots (max-parallel-jobs)`);
  }

  inventory(): readonly [] {
    return [];
  }

  async probe(): Promise<{ readonly alive: false; readonly why: string }> {
    return { alive: false, why: "slots are not probed" };
  }

  close(): Promise<void> {
    return this.#close();
  }
}
