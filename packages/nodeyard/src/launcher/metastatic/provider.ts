import {
  type CreateOrder,
  DriverError,
  type LabelConfig,
  type Machine,
  type Provider,
  type Resources,
  type Step,
  type StepContext,
} from "@nodeyard/driver";
import type { HeldNode } from "../held-records.ts";
import type { MetastaticLabel, MetastaticProvider } from "./config.ts";
import { slotResources } from "./machine.ts";
import type { Slots } from "./slots.ts";

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

  /** `remove` under the lock of the node's record, which its slot is taken out of. */
  free(step: StepContext, node: HeldNode): AsyncGenerator<Step, void, void> {
    return this.#slots.remove(step, node);
  }

  // biome-ignore lint/correctness/useYield: the contract's form; a slot needs the lock that `launch` is given.
  async *create(): AsyncGenerator<Step, Machine, void> {
    throw new DriverError(
      "fatal",
      `provider ${this.#config.name}: a slot is only given under the lock of its node`,
    );
  }

  // biome-ignore lint/correctness/useYield: the contract's form; a slot needs the lock that `free` is given.
  async *remove(): AsyncGenerator<Step, void, void> {
    throw new DriverError(
      "fatal",
      `provider ${this.#config.name}: a slot is only freed under the lock of its node`,
    );
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
    const { slots, sliver } = (label as MetastaticLabel).own;
    if (slots >= 1) return slotResources(sliver);
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
