import { type CreateOrder, DriverError, type Machine, type Step, type StepContext } from "@nodeyard/driver";
import { backoff, messageOf, sleep } from "@nodeyard/runtime";
import { FenceLost } from "../../coordination/index.ts";
import { retireBacking, slotPlace } from "../../operations/index.ts";
import type { HeldNode } from "../held-records.ts";
import { type ChosenSlot, chooseSlot } from "./choose.ts";
import { claimPath } from "./claims.ts";
import type { MetastaticLabel, MetastaticProvider } from "./config.ts";
import type { SlotHandles } from "./handles.ts";
import type { Isolation } from "./isolation.ts";
import { slotMachine, slotPatch } from "./machine.ts";
import type { SlotIndex } from "./slot-index.ts";
import { claimSlot, freeSlot } from "./slot-lock.ts";
import { WaitingLine } from "./waiting-line.ts";

const CLAIM_MS = 60_000;

/**
 * Gives nodes their slots: chooses from the book, claims in the tree, and waits for a backing node where there is no slot. Every
 * launcher does it for the nodes that it launches; what they race for is decided by the claim.
 */
export class Slots {
  readonly #context: SlotHandles;
  readonly #config: MetastaticProvider;
  readonly #book: SlotIndex;
  /** Slots chosen and not claimed yet. */
  readonly #taken = new Set<string>();
  readonly #line = new WaitingLine();
  readonly #isolation: Isolation;
  #refused: Error | undefined;

  constructor(context: SlotHandles, config: MetastaticProvider, book: SlotIndex, isolation: Isolation) {
    this.#isolation = isolation;
    this.#context = context;
    this.#config = config;
    this.#book = book;
  }

  /** The steps of a launch: `create` of the driver contract, under the lock of the node's record. */
  async *create(order: CreateOrder, step: StepContext, node: HeldNode): AsyncGenerator<Step, Machine, void> {
    const label = order.label as MetastaticLabel;
    // Of an attempt that was cut off.
    const former = this.#book.claims.ofNode(node.id);
    yield* this.#isolation.remove(node.id, former, step);
    await freeSlot(node, former);
    for (let attempt = 0; ; attempt++) {
      yield { step: "backing-node", deadlineMs: this.#config.launchTimeoutMs };
      const place = await this.#place(label, order.request.id, step.signal);
      let claimed = false;
      try {
        yield { step: "slot", deadlineMs: CLAIM_MS };
        claimed = await this.#claim(order, node, place);
      } finally {
        this.#taken.delete(claimPath(place.backing, place.slot));
        if (!claimed) this.wake();
      }
      if (claimed) break;
      await sleep(this.#context.clock, backoff(this.#context.random, attempt, 5, 1_000), step.signal);
    }
    const [has] = this.#book.claims.ofNode(node.id);
    const backing = slotPlace(node.record)?.backing ?? has?.backing ?? "";
    if (label.own.sliver !== undefined)
      return yield* this.#isolation.create(order, step, node, label.own.sliver, backing);
    if (!label.hostKeyChecking) return slotMachine(node.id, node.record, node.record.hostKeys);
    yield { step: "scan", deadlineMs: this.#config.bootTimeoutMs + CLAIM_MS };
    return slotMachine(node.id, node.record, await this.#scan(node, step.signal));
  }

  /** The steps of a removal: `remove` of the driver contract, under the lock of the node's record. */
  async *remove(step: StepContext, node: HeldNode): AsyncGenerator<Step, void, void> {
    const claims = this.#book.claims.ofNode(node.id);
    yield* this.#isolation.remove(node.id, claims, step);
    yield { step: "slot", deadlineMs: CLAIM_MS };
    this.#count("freed", await freeSlot(node, claims));
  }

  /** Something changed: whoever waits may have a slot now. */
  wake(): void {
    this.#line.serve((label) => this.#choose(label));
  }

  /** A backing request failed: as many as would have had a slot there lose this attempt. */
  fail(label: string, count: number, why: string): void {
    this.#line.fail(label, count, () => new DriverError("transient", why));
  }

  /** Nobody waits for its nodes any more. */
  forget(request: string): void {
    this.#line.forget(request, () => new FenceLost(`request ${request}: it is gone`));
  }

  /** Claims nothing more: someone else serves this provider, who does not see our claims. */
  refuse(why: Error): void {
    this.#refused = why;
    this.#line.failAll(() => new DriverError("transient", messageOf(why)));
  }

  async #place(label: MetastaticLabel, request: string, signal: AbortSignal): Promise<ChosenSlot> {
    if (this.#refused !== undefined) throw new DriverError("transient", messageOf(this.#refused));
    // Through the line, so that nobody is served before those who wait.
    const place = this.#line.wait(label, request, signal);
    this.wake();
    return place;
  }

  #choose(label: MetastaticLabel): ChosenSlot | undefined {
    const { ages } = this.#context;
    const place = chooseSlot(
      this.#book,
      label.name,
      label.own,
      (id, instant) => ages.age(id, instant),
      this.#taken,
    );
    if (place !== undefined) this.#taken.add(claimPath(place.backing, place.slot));
    return place;
  }

  async #claim(order: CreateOrder, node: HeldNode, place: ChosenSlot): Promise<boolean> {
    if (this.#refused !== undefined) return false;
    const self = { id: node.id, provider: this.#config.name };
    const { sliver } = (order.label as MetastaticLabel).own;
    const patch = slotPatch(self, order.pool, place.node.record, place, sliver);
    const outcome = await claimSlot(node, place, patch);
    this.#count(outcome === "claimed" ? "claimed" : "lost");
    return outcome === "claimed";
  }

  #count(change: "claimed" | "lost" | "freed", by = 1): void {
    this.#context.counters.add("launcher.slots", by, { provider: this.#config.name, change });
  }

  async #scan(node: HeldNode, signal: AbortSignal): Promise<readonly string[]> {
    const { interfaceIp, connectionPort, connectionType, hostKeys } = node.record;
    const backing = this.#book.claims.ofNode(node.id)[0]?.backing;
    try {
      if (interfaceIp === null || typeof connectionPort !== "number")
        throw new DriverError("fatal", `backing node ${backing} has no address to scan`);
      const scanned = await this.#context.scan.scan({
        host: interfaceIp,
        port: connectionPort,
        keys: connectionType === "ssh" || connectionType === "network_cli",
        timeoutMs: this.#config.bootTimeoutMs,
        signal,
      });
      return scanned.hostKeys.length > 0 ? scanned.hostKeys : hostKeys;
    } catch (error) {
      if (signal.aborted || backing === undefined) throw error;
      await retireBacking(this.#context.tree, backing, `node ${node.id}: ${messageOf(error)}`);
      this.#context.log.warn(
        { provider: this.#config.name, backing, node: node.id, error: messageOf(error) },
        "a slot does not answer; its backing node gets no new slots",
      );
      throw error;
    }
  }
}
