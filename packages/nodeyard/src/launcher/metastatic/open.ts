import type { ProviderConfig } from "@nodeyard/driver";
import { backingOwner } from "../../operations/index.ts";
import type { ViewEvent } from "../../view/index.ts";
import type { OpenProvider, SlotSource } from "../handles.ts";
import type { HeldNode } from "../held-records.ts";
import { isServed } from "../providers/foreign.ts";
import type { MetastaticLabelOwn, MetastaticProvider } from "./config.ts";
import { METASTATIC, metastaticDriver } from "./driver.ts";
import type { SlotHandles } from "./handles.ts";
import { Isolation } from "./isolation.ts";
import { Owner } from "./owner.ts";
import { labelOf } from "./plan-requests.ts";
import { SlotProvider } from "./provider.ts";
import { SlotIndex } from "./slot-index.ts";
import { Slots } from "./slots.ts";

export function isMetastatic(config: ProviderConfig): boolean {
  return config.driver === METASTATIC;
}

/** Opens a metastatic provider on the tree. */
export function openMetastatic(
  context: SlotHandles,
  given: ProviderConfig,
): OpenProvider & { readonly slots: SlotSource } {
  const config = given as MetastaticProvider;
  const runtime = new MetastaticRuntime(context, config);
  const provider = new SlotProvider(config, runtime.slots, () => runtime.close());
  return {
    config,
    driver: metastaticDriver as OpenProvider["driver"],
    provider,
    work: new Set(),
    slots: {
      launch: provider.launch.bind(provider),
      free: provider.free.bind(provider),
      recall: (node, signal) => runtime.recall(node, signal),
      serve: () => runtime.serve(),
      refuse: (why) => runtime.slots.refuse(why),
      drain: (ended) => runtime.drain(ended),
      retire: () => runtime.retire(),
    },
  };
}

/** The parts of one provider, and the view's events for them. */
class MetastaticRuntime {
  readonly slots: Slots;
  readonly #context: SlotHandles;
  readonly #config: MetastaticProvider;
  readonly #labels: ReadonlyMap<string, MetastaticLabelOwn>;
  readonly #book: SlotIndex;
  readonly #owner: Owner;
  readonly #isolation: Isolation;
  readonly #unsubscribe: () => void;
  /** Set while it drains. */
  #drained: (() => void) | undefined;

  constructor(context: SlotHandles, config: MetastaticProvider) {
    this.#context = context;
    this.#config = config;
    this.#labels = labelsOf(config);
    this.#book = new SlotIndex(config.name);
    this.#book.seed(context.view);
    this.#isolation = new Isolation(context, config, this.#book);
    this.slots = new Slots(context, config, this.#book, this.#isolation);
    this.#owner = new Owner({
      context,
      provider: config.name,
      labels: this.#labels,
      book: this.#book,
      isolation: this.#isolation,
    });
    this.#unsubscribe = context.view.onEvent((event) => this.#onEvent(event));
  }

  /** A ready node of it is about to be handed out. */
  recall(node: HeldNode, signal: AbortSignal): Promise<void> {
    return this.#isolation.recall(node, signal);
  }

  /** Its pools are registered. */
  serve(): void {
    this.#owner.start();
  }

  /**
   * It has left the configuration. False when others serve it, who go on; else it gives everything back as it becomes free, and calls
   * `ended` when nothing is left or somebody serves it again.
   */
  async drain(ended: () => void): Promise<boolean> {
    if (await isServed(this.#context, this.#config.name)) return false;
    this.#drained = ended;
    this.slots.refuse(new Error(`provider ${this.#config.name} left the configuration`));
    this.#owner.drain(ended);
    return true;
  }

  /** Another takes its place, or it goes: launches under way end with it, and nothing else is begun. */
  retire(): Promise<void> {
    return this.#owner.close();
  }

  async close(): Promise<void> {
    await this.retire();
    this.slots.refuse(new Error(`provider ${this.#config.name} is closed`));
    this.#unsubscribe();
    this.#isolation.close();
  }

  #onEvent(event: ViewEvent): void {
    if (event.type === "component") return this.#onComponent(event);
    if (event.type === "request") {
      if (event.after === undefined) this.slots.forget(event.id);
      const record = (event.after ?? event.before)!.record;
      if (record.requestor !== backingOwner(this.#config.name)) return;
      this.#onRequest(event);
    } else if (event.type === "complete" ? !event.complete : !this.#book.take(event)) return;
    this.#owner.onEvent(event);
    this.slots.wake();
  }

  #onRequest({ before, after }: Extract<ViewEvent, { type: "request" }>): void {
    if (after?.record.state !== "failed" || before?.record.state === "failed") return;
    const label = labelOf(after.record, this.#labels);
    const slots = label === undefined ? undefined : this.#labels.get(label)?.slots;
    if (label === undefined || slots === undefined) return;
    this.slots.fail(label, slots, `backing node failed: nobody could serve request ${after.id}`);
  }

  #onComponent({ after }: Extract<ViewEvent, { type: "component" }>): void {
    if (after?.kind !== "pool" || after.record.providerName !== this.#config.name) return;
    this.#drained?.();
  }
}

/** Settings by label; of several pools with one label the first counts (docs/contract/drivers.md, "Giving backing nodes back"). */
function labelsOf(config: MetastaticProvider): ReadonlyMap<string, MetastaticLabelOwn> {
  const labels = new Map<string, MetastaticLabelOwn>();
  for (const pool of config.pools)
    for (const { name, own } of pool.labels.values()) if (!labels.has(name)) labels.set(name, own);
  return labels;
}
