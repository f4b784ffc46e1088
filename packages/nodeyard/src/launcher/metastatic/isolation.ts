import {
  type CreateOrder,
  DriverError,
  type Machine,
  type NodeUse,
  type Step,
  type StepContext,
} from "@nodeyard/driver";
import type { NodeRecord } from "@nodeyard/model";
import { deadline, messageOf } from "@nodeyard/runtime";
import { TreeError } from "@nodeyard/tree";
import { decodeClaim, retireBacking, slotsFolder } from "../../operations/index.ts";
import { MIN_READY } from "../../scheduler/index.ts";
import { type BackingHost, type SlotIsolation, SlotSlivers } from "../../slivers/index.ts";
import type { HeldNode } from "../held-records.ts";
import { nodeUse } from "../providers/uses.ts";
import { offered } from "./choose.ts";
import type { Claim } from "./claims.ts";
import type { MetastaticLabel, MetastaticLabelOwn, MetastaticProvider } from "./config.ts";
import type { SlotHandles } from "./handles.ts";
import { slotResources } from "./machine.ts";
import type { Backing, SlotIndex } from "./slot-index.ts";

/** For a document to be taken by a machine. */
const DOCUMENT_MS = 60_000;
/** For a sliver to start; its image may have to be made first. */
const START_MS = 1_800_000;
/** For a sliver to end and everything of it to be gone. */
const END_MS = 300_000;
/** To compare the slivers of all backing nodes with their slots. */
const SWEEP_MS = 60_000;

/** Slots that are slivers: made after the slot was claimed and gone before it is freed, so that a sliver without a claim is a stray. */
export class Isolation {
  readonly #context: SlotHandles;
  readonly #config: MetastaticProvider;
  readonly #book: SlotIndex;
  #slivers: SlotSlivers | undefined;
  readonly #closed = new AbortController();
  #sweeping = false;

  constructor(context: SlotHandles, config: MetastaticProvider, book: SlotIndex) {
    this.#context = context;
    this.#config = config;
    this.#book = book;
  }

  /** The steps after a slot was claimed; they return how to connect, in place of the backing node's own ways. */
  async *create(
    order: CreateOrder,
    { signal }: StepContext,
    node: HeldNode,
    want: SlotIsolation,
    backing: string,
  ): AsyncGenerator<Step, Machine, void> {
    const at = this.#hostOf(backing);
    if (at === undefined)
      throw new DriverError("transient", `backing node ${backing} of node ${node.id} is gone`);
    yield { step: "document", deadlineMs: DOCUMENT_MS };
    await this.#all.add(at, node.id, want, signal);
    yield { step: "sliver", deadlineMs: START_MS };
    const { username, host, port } = await this.#all.started(at, node.id, signal);
    const label = order.label as MetastaticLabel;
    yield { step: "scan", deadlineMs: this.#config.bootTimeoutMs + DOCUMENT_MS };
    const { hostKeys } = await this.#context.scan.scan({
      host,
      port,
      keys: label.hostKeyChecking,
      timeoutMs: this.#config.bootTimeoutMs,
      signal,
    });
    if (want.lends && order.request.requestor === MIN_READY) yield* this.#idle(at, node.id, signal);
    const { az, region, cloud, slot, driverData } = node.record;
    return {
      externalId: node.id,
      interfaceIp: host,
      publicIpv4: null,
      publicIpv6: null,
      privateIpv4: host,
      az,
      region,
      cloud,
      slot,
      driverData,
      hostKeys,
      resources: slotResources(want),
      connection: { username, port, type: "ssh", pythonPath: "auto", shellType: null },
    };
  }

  /** Nobody asked for it yet. That it does not lend harms nobody: a sweep tries again. */
  async *#idle(at: BackingHost, node: string, signal: AbortSignal): AsyncGenerator<Step, void, void> {
    yield { step: "lend", deadlineMs: DOCUMENT_MS };
    try {
      await this.#all.idle(at, node, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      this.#context.log.warn({ node, backing: at.id, error: messageOf(error) }, "an idle slot does not lend");
    }
  }

  /**
   * Before a ready node, which is allocated and locked by us, is handed out: resolves when its slot has back what it lent. Rejects with
   * DriverError.
   */
  async recall({ id, record }: HeldNode, signal: AbortSignal): Promise<void> {
    if (!lendsBy(record) && !this.#labels(record.type[0] ?? "").some(({ sliver }) => sliver?.lends)) return;
    const [claim] = this.#book.claims.ofNode(id);
    const at = claim === undefined ? undefined : this.#hostOf(claim.backing);
    if (at === undefined) throw new DriverError("transient", `the backing node of node ${id} is gone`);
    await this.#all.recall(at, id, signal);
  }

  /** Before a slot is freed. A machine that does not answer takes no more slots, and is not waited for once that is known. */
  async *remove(
    node: string,
    claims: readonly Claim[],
    { signal }: StepContext,
  ): AsyncGenerator<Step, void, void> {
    for (const { backing } of claims) {
      const at = this.#isIsolated(node) ? this.#hostOf(backing) : undefined;
      if (at === undefined) continue;
      yield { step: "sliver", deadlineMs: END_MS };
      try {
        await this.#all.remove(at, node, signal);
      } catch (error) {
        if (signal.aborted || !(error instanceof DriverError) || error.kind !== "transient") throw error;
        const facts = { provider: this.#config.name, backing, node, error: messageOf(error) };
        if (!this.#book.claims.retired.has(backing)) {
          await retireBacking(this.#context.tree, backing, `node ${node}: ${messageOf(error)}`);
          this.#context.log.warn(facts, "a sliver host does not answer; it gets no new slots");
          throw error;
        }
        // Its next use begins with another epoch, and with the end of what this one left.
        this.#context.log.warn(facts, "cannot delete a sliver on a retired machine that does not answer");
      }
    }
  }

  /** Ends slivers that a crash left without a slot, once at a time and in the background. For the elected owner. */
  sweep(): void {
    if (this.#sweeping || this.#closed.signal.aborted) return;
    this.#sweeping = true;
    const late = () => new DriverError("timeout", `not compared within ${SWEEP_MS} ms`);
    const limit = deadline(this.#context.clock, SWEEP_MS, late, this.#closed.signal);
    void this.#sweep(limit.signal).finally(() => {
      limit.cancel();
      this.#sweeping = false;
    });
  }

  async #sweep(signal: AbortSignal): Promise<void> {
    const { log } = this.#context;
    for (const backing of this.#book.backings.values()) {
      const at = this.#isOfSlivers(backing) ? this.#hostOf(backing.id) : undefined;
      if (at === undefined) continue;
      try {
        const gone = await this.#all.sweep(
          at,
          () => this.#uses(backing.id, at.lending !== undefined),
          signal,
        );
        if (gone.length > 0) log.info({ backing: backing.id, nodes: gone }, "ended slivers without a slot");
      } catch (error) {
        log.debug({ backing: backing.id, error: messageOf(error) }, "cannot compare slivers with slots");
      }
    }
  }

  /** Nodes with a slot there, by the tree itself: the view may be behind. What is done with them is read where slots lend. */
  async #uses(backing: string, lends: boolean): Promise<ReadonlyMap<string, NodeUse>> {
    const { tree } = this.#context;
    const folder = slotsFolder(backing);
    await tree.sync(folder);
    const names = await tree.children(folder);
    const claims = await Promise.all(
      names.map((name) => tree.get(`${folder}/${name}`).catch((error: unknown) => freed(error))),
    );
    const nodes = claims.flatMap((claim) => (claim === undefined ? [] : (decodeClaim(claim.data) ?? [])));
    const uses = nodes.map(async (node) => [node, lends ? await nodeUse(tree, node) : "between"] as const);
    return new Map(await Promise.all(uses));
  }

  close(): void {
    this.#closed.abort(new DriverError("transient", `provider ${this.#config.name} is closed`));
    this.#slivers?.close();
  }

  get #all(): SlotSlivers {
    const { slivers: access, installation, clock, random } = this.#context;
    if (access === undefined)
      throw new DriverError(
        "configuration",
        `provider ${this.#config.name}: this process cannot reach sliver hosts`,
      );
    this.#slivers ??= new SlotSlivers({ access, installation, provider: this.#config.name, clock, random });
    return this.#slivers;
  }

  /** By what its record says: the label may be another one by now. */
  #isIsolated(node: string): boolean {
    const record = this.#book.ends.get(node)?.entry.record;
    return record !== undefined && noted(record).isolation === "sliver";
  }

  #isOfSlivers({ data }: Backing): boolean {
    return this.#labels(data.label).some(({ sliver }) => sliver !== undefined);
  }

  #labels(wanted: string): readonly MetastaticLabelOwn[] {
    return this.#config.pools.flatMap((pool) =>
      [...pool.labels.values()].filter(({ name }) => name === wanted).map(({ own }) => own),
    );
  }

  #lendingOf(backing: Backing): Pick<BackingHost, "lending"> {
    const [own] = this.#labels(backing.data.label);
    if (own?.sliver?.lends !== true) return {};
    return { lending: { places: offered(backing, own), rspec: own.sliver.rspec } };
  }

  #hostOf(backing: string): BackingHost | undefined {
    const found = this.#book.backings.get(backing);
    if (found === undefined) {
      this.#slivers?.forget(backing);
      return undefined;
    }
    const { interfaceIp, connectionPort, hostKeys } = found.entry.record;
    if (interfaceIp === null || interfaceIp === "")
      throw new DriverError("configuration", `backing node ${backing} has no address`);
    return {
      id: backing,
      host: interfaceIp,
      port: typeof connectionPort === "number" ? connectionPort : 22,
      hostKeys,
      // The moment when it became ours, in seconds: written once per use, read by every launcher.
      epoch: Math.max(1, Math.floor(found.data.launched)),
      ...this.#lendingOf(found),
    };
  }
}

function freed(error: unknown): undefined {
  if (!(error instanceof TreeError) || error.code !== "tree.no_node") throw error;
}

/** Its label may not lend any more; its slot may still do. */
function lendsBy(record: NodeRecord): boolean {
  return noted(record).lend === "idle";
}

function noted({ driverData }: NodeRecord): Readonly<Record<string, unknown>> {
  return typeof driverData === "object" && driverData !== null ? (driverData as Record<string, unknown>) : {};
}
