import {
  type BackingNode,
  type Backings,
  type CreateOrder,
  type DriverContext,
  DriverError,
  type GivenSlot,
  type LabelConfig,
  type Machine,
  MIN_READY,
  messageOf,
  type Offers,
  type ProviderMethods,
  type Resource,
  type Resources,
  type SliverMachine,
  type SlotRules,
  type Step,
  type StepContext,
  type Tag,
} from "@nodeyard/driver";
import { type SliverSettings, volumesOf } from "@nodeyard/driver-sliver/parts";
import type { BackingHost } from "./backing-host.ts";
import type { MetastaticLabel, MetastaticLabelOwn, MetastaticProvider } from "./config.ts";
import type { SlotSlivers } from "./slot-slivers.ts";

/** Milliseconds for a machine to accept a document. */
const DOCUMENT_MS = 60_000;
/** Milliseconds for a sliver to start. Its image may have to be unpacked first. */
const START_MS = 1_800_000;
/** Milliseconds for a sliver to end and for all its resources to be removed. */
const END_MS = 300_000;

/**
 * Slots of backing nodes. With `isolation: sliver` each slot is a sliver, which is made after the slot was claimed and removed before the
 * slot is freed. So a sliver without a claim was left by a crash and can be ended. Otherwise the slot is the backing node itself and
 * nothing is made.
 */
export class SlotProvider implements ProviderMethods {
  readonly offers: Offers;
  readonly #config: MetastaticProvider;
  readonly #context: DriverContext;
  readonly #backings: Backings;
  readonly #slivers: SlotSlivers;

  constructor(
    config: MetastaticProvider,
    context: DriverContext & { readonly backings: Backings },
    slivers: SlotSlivers,
  ) {
    this.#config = config;
    this.#context = context;
    this.#backings = context.backings;
    this.#slivers = slivers;
    this.offers = {
      slots: { compare: (signal) => this.#compare(signal) },
      console: { read: ({ nodeId }, { signal }) => this.#console(nodeId, signal) },
      handover: { ready: (tag, context) => this.#recall(tag.nodeId, context) },
      ...(config.pools.some(({ labels }) => [...labels.values()].some(({ own }) => own.sliver !== undefined))
        ? { slivers: { machines: (signal) => this.#machines(signal) } }
        : {}),
    };
  }

  /** The slot was claimed before this is called. A slot without isolation costs at most a scan. */
  async *create(order: CreateOrder, { signal }: StepContext): AsyncGenerator<Step, Machine, void> {
    const label = order.label as MetastaticLabel;
    const slot = order.slot!;
    if (label.own.sliver !== undefined)
      return yield* this.#createSliver(order, slot, label.own.sliver, signal);
    if (!label.hostKeyChecking) return slot.machine;
    yield { step: "scan", deadlineMs: this.#config.bootTimeoutMs + DOCUMENT_MS };
    return { ...slot.machine, hostKeys: await this.#scan(order.tag.nodeId, slot, signal) };
  }

  /** Resolves when the sliver is gone; the caller frees the slot after that. A node without a sliver has nothing to remove. */
  async *remove({ nodeId }: Tag, context: StepContext): AsyncGenerator<Step, void, void> {
    const { signal } = context;
    const owner = this.#backings.of(nodeId);
    // The node's record decides, because the label may have changed since.
    if (owner?.notes.isolation !== "sliver") return;
    for (const backing of owner.on) {
      yield { step: "sliver", deadlineMs: END_MS };
      try {
        await this.#slivers.remove(this.#hostOf(backing), nodeId, context);
      } catch (error) {
        if (signal.aborted || !(error instanceof DriverError) || error.kind !== "transient") throw error;
        const facts = {
          provider: this.#config.name,
          backing: backing.id,
          node: nodeId,
          error: messageOf(error),
        };
        // A machine that does not answer gets no new slots. Once it is retired, deletions do not wait for it any more.
        if (!this.#backings.isRetired(backing.id)) {
          await this.#backings.retire(backing.id, `node ${nodeId}: ${messageOf(error)}`);
          this.#context.log.warn(facts, "a sliver host does not answer; it gets no new slots");
          throw error;
        }
        // The machine's next use has a higher epoch and ends all slivers of this one.
        this.#context.log.warn(facts, "cannot delete a sliver on a retired machine that does not answer");
      }
    }
  }

  /** Slots are claims in the tree and no resources of a cloud, so there is nothing to find, list, sweep or limit. */
  async find(): Promise<undefined> {
    return undefined;
  }

  async list(): Promise<readonly Resource[]> {
    return [];
  }

  async removeResource(): Promise<void> {}

  async quota(): Promise<Resources> {
    return {};
  }

  async need(label: LabelConfig): Promise<Resources> {
    return slotRules.need(label);
  }

  async close(): Promise<void> {
    this.#slivers.close();
  }

  /** Makes the sliver of a claimed slot: adds it to the machine's document, waits until it runs, and reads its host keys. */
  async *#createSliver(
    { tag: { nodeId, installation }, label, request, traceparent }: CreateOrder,
    { machine, backing }: GivenSlot,
    want: SliverSettings,
    signal: AbortSignal,
  ): AsyncGenerator<Step, Machine, void> {
    const at = this.#hostOf(backing);
    // Machines that are no longer backing nodes are forgotten.
    this.#slivers.keep(new Set(this.#backings.all().map(({ id }) => id)));
    yield { step: "document", deadlineMs: DOCUMENT_MS };
    await this.#slivers.add(
      at,
      nodeId,
      { ...want, traceparent, user: { installation, label: label.name, request } },
      signal,
    );
    yield { step: "sliver", deadlineMs: START_MS };
    const { user: username, address: host, port } = await this.#slivers.started(at, nodeId, signal);
    yield { step: "scan", deadlineMs: this.#config.bootTimeoutMs + DOCUMENT_MS };
    const { hostKeys } = await this.#context.scan.scan({
      host,
      port,
      keys: label.hostKeyChecking,
      timeoutMs: this.#config.bootTimeoutMs,
      signal,
    });
    // A node that a client waits for is delivered at once and would only have to be recalled.
    if (want.lends && request.requestor === MIN_READY) {
      yield { step: "lend", deadlineMs: DOCUMENT_MS };
      // The node is not assigned yet, so a slot that fails to lend harms no job. `compare` tries again.
      await this.#slivers.idle(at, nodeId, signal).catch((error: unknown) => {
        if (signal.aborted) throw error;
        const facts = { node: nodeId, backing: at.id, error: messageOf(error) };
        this.#context.log.warn(facts, "an idle slot does not lend");
      });
    }
    return {
      ...machine,
      interfaceIp: host,
      publicIpv4: null,
      publicIpv6: null,
      privateIpv4: host,
      hostKeys,
      resources: slotResources(want),
      connection: { username, port, type: "ssh", pythonPath: "auto", shellType: null },
    };
  }

  /** Host keys of a slot without isolation. A backing node that does not answer is retired, or every later launch would fail on it too. */
  async #scan(
    node: string,
    { machine, backing }: GivenSlot,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const { host, port, type } = { ...machine.connection, host: machine.interfaceIp };
    try {
      if (host === null || port === undefined)
        throw new DriverError("fatal", `backing node ${backing.id} has no address to scan`);
      const scanned = await this.#context.scan.scan({
        host,
        port,
        keys: type === "ssh" || type === "network_cli",
        timeoutMs: this.#config.bootTimeoutMs,
        signal,
      });
      return scanned.hostKeys.length > 0 ? scanned.hostKeys : (machine.hostKeys ?? []);
    } catch (error) {
      if (signal.aborted) throw error;
      await this.#backings.retire(backing.id, `node ${node}: ${messageOf(error)}`);
      const facts = { provider: this.#config.name, backing: backing.id, node, error: messageOf(error) };
      this.#context.log.warn(facts, "a slot does not answer; its backing node gets no new slots");
      throw error;
    }
  }

  /** A slot that is no sliver has no console of its own. */
  async #console(node: string, signal: AbortSignal): Promise<string | null> {
    const { notes, on: [backing] = [] } = this.#backings.of(node) ?? {};
    if (notes?.isolation !== "sliver" || backing === undefined) return null;
    return await this.#slivers.console(this.#hostOf(backing), node, signal);
  }

  /** Resolves when the slot of a ready node has got back what it lent, and has no other request's cache. */
  async #recall(node: string, context: StepContext): Promise<void> {
    const owner = this.#backings.of(node);
    // The node's record decides, because the label may have changed since.
    if (owner?.notes.isolation !== "sliver") return;
    const [backing] = owner.on;
    if (backing === undefined) throw new DriverError("transient", `the backing node of node ${node} is gone`);
    const lends =
      owner.notes.lend === "idle" || this.#labels(owner.label).some(({ sliver }) => sliver?.lends);
    await this.#slivers.recall(this.#hostOf(backing), node, lends, context);
  }

  /** Backing nodes whose slots are slivers. */
  #machines(signal: AbortSignal): Promise<readonly SliverMachine[]> {
    // One without an address has not been handed to the provider yet.
    const hosts = this.#backings.all().filter((one) => this.#isDivided(one) && (one.host ?? "") !== "");
    return Promise.all(hosts.map((one) => this.#slivers.machine(this.#hostOf(one), signal)));
  }

  #isDivided({ label }: BackingNode): boolean {
    return this.#labels(label).some(({ sliver }) => sliver !== undefined);
  }

  /** Ends slivers that a crash left without a slot, and sets which of the others lend. */
  async #compare(signal: AbortSignal): Promise<void> {
    const { log } = this.#context;
    for (const backing of this.#backings.all()) {
      if (!this.#isDivided(backing)) continue;
      try {
        const at = this.#hostOf(backing);
        const uses = () => this.#backings.uses(backing.id, at.lending !== undefined);
        const gone = await this.#slivers.sweep(at, uses, signal);
        if (gone.length > 0) log.info({ backing: backing.id, nodes: gone }, "ended slivers without a slot");
      } catch (error) {
        log.debug({ backing: backing.id, error: messageOf(error) }, "cannot compare slivers with slots");
      }
    }
  }

  /** Settings of a label in all pools of the provider. */
  #labels(wanted: string | undefined): readonly MetastaticLabelOwn[] {
    return this.#config.pools.flatMap((pool) =>
      [...pool.labels.values()].filter(({ name }) => name === wanted).map(({ own }) => own),
    );
  }

  /** A backing node as a sliver host. Its epoch is the time at which it became a backing node, which grows with each use. */
  #hostOf({ id, host, port, hostKeys, launched, label, slots }: BackingNode): BackingHost {
    if (host === null || host === "")
      throw new DriverError("configuration", `backing node ${id} has no address`);
    const [own] = this.#labels(label);
    const lending = own?.sliver?.lends === true && {
      lending: { places: Math.min(slots, own.slots), rspec: own.sliver.rspec },
    };
    return { id, host, port, hostKeys, epoch: Math.max(1, Math.floor(launched)), ...lending };
  }
}

/** How a label is cut into slots. */
export const slotRules: SlotRules = {
  of(label) {
    const { sliver, ...settings } = (label as MetastaticLabel).own;
    if (sliver === undefined) return settings;
    // The sliver may exist from the moment of the claim.
    const caches = sliver.caches.rules.map(({ name, key }) => ({ name: name!, key }));
    return { ...settings, caches, notes: { isolation: "sliver", ...(sliver.lends && { lend: "idle" }) } };
  },
  need(label) {
    const { slots, sliver } = (label as MetastaticLabel).own;
    if (slots >= 1) return slotResources(sliver);
    throw new DriverError("configuration", `label ${label.name} has no slots (max-parallel-jobs)`);
  },
};

/**
 * Amounts of a slot: one instance, because the machine counts for its own provider (docs/contract/drivers.md, "Metastatic records"). A
 * sliver also counts with its guarantees.
 */
function slotResources(isolation: SliverSettings | undefined): Resources {
  if (isolation === undefined) return { instances: 1, cores: 0, ram: 0 };
  const { cpuGuarantee = 0, memoryGuarantee = 0, disk = 0 } = isolation.rspec;
  const volumes = volumesOf(isolation.caches, undefined);
  return {
    instances: 1,
    millicores: cpuGuarantee,
    cores: Math.floor(cpuGuarantee / 1000),
    ram: Math.ceil(memoryGuarantee / 1024),
    "disk-mib": Math.ceil(volumes.reduce((sum, { size }) => sum + size, disk) / 1024),
  };
}
