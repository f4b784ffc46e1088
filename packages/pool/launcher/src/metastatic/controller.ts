import { Controller, Election } from "@nodeyard/coordination";
import { DriverError, type SlotSettings } from "@nodeyard/driver";
import { backingOwner, slotPlace, slotsPath } from "@nodeyard/model";
import { backoff, deadline, messageOf, settledWithin } from "@nodeyard/runtime";
import { slotLabelOf } from "@nodeyard/scheduler";
import { FenceLost, TreeError } from "@nodeyard/tree";
import type { Backing, ViewEvent } from "@nodeyard/view";
import { FailedTries } from "../failed-tries.ts";
import type { OpenProvider } from "../handles.ts";
import type { RecordHandles } from "../held-records.ts";
import { isServed } from "../providers/foreign.ts";
import { slotSettingsOf } from "../providers/learn-facts.ts";
import { carryOut, type OwnerParts, unlockForgotten } from "./carry-out.ts";
import { claimsOfNoNode, keyOf, type OwnerAction, planOwner } from "./plan.ts";

/** Milliseconds between two reconciliations without an event. */
const RESYNC_MS = 60_000;
/** Milliseconds in which events are collected, so that a nodeset of many slots causes one reconciliation. */
const GATHER_MS = 5;
/** Milliseconds before backing nodes of a label are requested again after every pool declined; doubles with each failure. */
const ASK_AGAIN_MS = 1_000;
/** How long `close` waits for work in progress, milliseconds. Once the election is lost, none of its writes succeeds. */
const CLOSE_MS = 2_000;
/** How often the slivers of all backing nodes are compared with their slots, milliseconds. */
const COMPARE_MS = 60_000;
/** Labels of a provider that is no longer configured. */
const nothing: ReadonlyMap<string, SlotSettings> = new Map();

/**
 * Manages the backing nodes of one metastatic provider: requests them, adopts the delivered nodes, and releases empty ones. Of several
 * launchers only the elected one does this, and each of its commits checks that it is still elected. Level-triggered: it compares the
 * wanted state with the actual one whenever something of the provider changes, and every minute. Which slot a node gets is the
 * scheduler's decision, and claims are made by the launches themselves.
 */
export class BackingController {
  readonly #parts: OwnerParts;
  readonly #context: RecordHandles;
  readonly #open: OpenProvider;
  readonly #provider: string;
  /** By label of the slots; from the configuration that the provider was opened with. */
  readonly #labels: ReadonlyMap<string, SlotSettings>;
  readonly #election: Election;
  /** Steady milliseconds at which the last slot of a backing node became free. */
  readonly #lastUsed = new Map<string, number>();
  /** Steady milliseconds before which no backing node of a label is requested. */
  readonly #askAfter = new Map<string, number>();
  /** Backing requests that failed in a row, by label. */
  readonly #failures = new FailedTries();
  /** Nodes whose record says that they are backing nodes of ours, but whose lock another client has; by the version of the record. */
  readonly #disowned = new Map<string, number>();
  /** Paths of claims that name no node and have been logged. */
  #logged: ReadonlySet<string> = new Set();
  /**
   * Whether the next reconciliation compares all claims with all records. Set at the start, with a new leadership, and after changes
   * by other programs.
   */
  #compare = true;
  /** Set while the driver compares slivers with slots. */
  #comparing: AbortController | undefined;
  /** Pauses of failed actions, by action. */
  readonly #retries = new Map<string, { readonly at: number; readonly attempt: number }>();
  readonly #controller: Controller;
  #unsubscribe: (() => void) | undefined;
  #closed = false;
  /** The callback of `drain`; undefined while the provider is served. */
  #drained: (() => void) | undefined;

  constructor(context: RecordHandles, open: OpenProvider) {
    const provider = open.config.name;
    this.#context = context;
    this.#open = open;
    this.#provider = provider;
    this.#labels = slotSettingsOf(open) ?? nothing;
    const disown = ({ id, entry }: Backing) => void this.#disowned.set(id, entry.version);
    this.#parts = { context, provider, labels: this.#labels, disown };
    this.#election = new Election(context, `metastatic:${provider}`, () => this.#onElection());
    this.#controller = new Controller(context, {
      name: `slots of ${provider}`,
      site: "launcher/metastatic/controller.ts",
      resyncMs: RESYNC_MS,
      reconcile: () => this.#reconcile(),
    });
  }

  /** Called when the provider's pools are registered: from now on backing nodes may be requested. */
  start(): void {
    this.#unsubscribe = this.#context.view.onEvent((event) => this.#onEvent(event));
    this.#election.start();
    this.#controller.wake(GATHER_MS);
  }

  /** Resolves when work in progress has ended or was abandoned. Another owner may be elected then. Repeated calls have no effect. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#unsubscribe?.();
    this.#comparing?.abort(new Error(`provider ${this.#provider} is closed`));
    await settledWithin(this.#context.clock, CLOSE_MS, this.#controller.close());
    await this.#election.close();
  }

  /**
   * The provider has left the configuration and the registry. Unless another launcher serves it, each backing node is given back as soon
   * as it is empty, no new one is requested, and idle nodes are deleted. Calls `ended` when nothing is left to do: at once when another
   * launcher serves the provider.
   */
  async drain(ended: () => void): Promise<void> {
    const { log, view } = this.#context;
    const drains = await isServed(this.#context, this.#provider).then(
      (served) => !served,
      (error: unknown) => {
        log.warn(
          { provider: this.#provider, error: messageOf(error) },
          "cannot read who else serves a provider",
        );
        return false;
      },
    );
    if (!drains) return ended();
    this.#drained = ended;
    const used = this.#backings().flatMap(({ id }) => (view.slots.isEmpty(id) ? [] : [id]));
    if (used.length > 0)
      log.warn(
        { provider: this.#provider, backing: used },
        "its provider left the configuration: its backing nodes are returned once their slots are",
      );
    this.#controller.wake();
  }

  #onEvent(event: ViewEvent): void {
    if (event.type === "component") {
      // A launcher serves the provider again.
      const { after } = event;
      if (after?.kind === "pool" && after.record.providerName === this.#provider) this.#drained?.();
      return;
    }
    if (!this.#concerns(event)) return;
    if (event.type === "own" && event.after === undefined) {
      const place = slotsPath(event.path);
      if (place?.kind === "claim") this.#lastUsed.set(place.backing, this.#context.clock.monotonic());
      if (place?.kind === "folder") this.#lastUsed.delete(place.backing);
    }
    if (this.#isOthers(event)) this.#compare = true;
    if (event.type === "request") this.#noteFailure(event);
    this.#controller.wake(GATHER_MS);
  }

  /** Whether an event can change what has to be done for this provider. */
  #concerns(event: ViewEvent): boolean {
    switch (event.type) {
      case "node":
        return [event.before, event.after].some((entry) => entry?.record.provider === this.#provider);
      case "backing":
        return event.after === undefined || event.after.provider === this.#provider;
      case "request":
        return (event.after ?? event.before)!.record.requestor === backingOwner(this.#provider);
      case "own":
        return slotsPath(event.path) !== undefined;
      case "unreadable":
        return (event.before ?? event.after)?.kind === "node" && event.after === undefined;
      case "complete":
        return event.complete;
      default:
        return false;
    }
  }

  /** Backing nodes of this provider, without those whose lock another client has. A new version of the record is tried again. */
  #backings(): readonly Backing[] {
    const { slots } = this.#context.view;
    return [...slots.byProvider.get(this.#provider)].flatMap((id) => {
      const backing = slots.backings.get(id)!;
      if (this.#disowned.get(id) === backing.entry.version) return [];
      this.#disowned.delete(id);
      return [backing];
    });
  }

  /** Whether another program changed a claim or a record alone. Nodeyard's launchers change both in one commit. */
  #isOthers(event: ViewEvent): boolean {
    if (event.type !== "node") return false;
    const claimed = this.#context.view.slots.claimsOf(event.id).length > 0;
    if (event.after === undefined) return claimed;
    return event.before === undefined && !claimed && slotPlace(event.after.record) !== undefined;
  }

  #onElection(): void {
    this.#compare = true;
    // A new owner does not know since when a backing node has been empty: the grace time starts again.
    this.#lastUsed.clear();
    this.#controller.wake(GATHER_MS);
  }

  /** Starts the pause of a label whose backing request every pool has declined. */
  #noteFailure({ before, after }: Extract<ViewEvent, { type: "request" }>): void {
    if (after?.record.state !== "failed" || before?.record.state === "failed") return;
    const label = slotLabelOf(after.record, this.#labels);
    if (label === undefined) return;
    const now = this.#context.clock.monotonic();
    const { failed } = this.#failures.add(label, now);
    const pause = backoff(this.#context.random, failed - 1, ASK_AGAIN_MS, RESYNC_MS);
    this.#askAfter.set(label, now + pause);
    const facts = { provider: this.#provider, label, request: after.id, retryMs: Math.round(pause) };
    this.#context.log.warn(facts, "every pool declined to make a backing node");
  }

  /** Carries out the actions that are due. */
  async #reconcile(): Promise<number | undefined> {
    const { view, ages, clock } = this.#context;
    if (view.complete && this.#isDrained()) this.#drained?.();
    if (!view.complete || !this.#election.leading) return undefined;
    // Reset before the first `await`: a change that comes meanwhile asks for another comparison.
    const compare = this.#compare;
    this.#compare = false;
    const { requests } = view;
    const owned = [...requests.byRequestor.get(backingOwner(this.#provider))];
    const { actions, nextAt } = planOwner({
      view,
      provider: this.#provider,
      backings: this.#backings(),
      // Without labels nothing is requested, and every backing node counts as closed.
      labels: this.#drained === undefined ? this.#labels : nothing,
      requests: owned.map((id) => requests.byId.get(id)!),
      lastUsed: (id) => this.#usedAt(id),
      askAfter: this.#askAfter,
      compare,
      now: clock.monotonic(),
      ageOf: (id, instant) => ages.age(id, instant),
      agesTrusted: ages.trusted,
    });
    const due = this.#due(actions);
    await Promise.all(due.map((action) => this.#attempt(action)));
    if (compare) {
      this.#logClaimsOfNoNode();
      await this.#unlockForgotten();
      this.#compareMachines();
    }
    const changed = due.some(({ type }) => type === "drop" || type === "reclaim");
    // A comparison that changed something is repeated. Without events, one is made now and then, in case an event was lost.
    if (compare ? changed : nextAt - clock.monotonic() > RESYNC_MS) this.#compare = true;
    // The controller itself looks every minute, so a time further away or Infinity does no harm.
    return Math.min(nextAt - clock.monotonic(), this.#nextRetry());
  }

  /** Logs each claim that names no node, once: its slot stays unused until an operator deletes the claim. */
  #logClaimsOfNoNode(): void {
    const { log, counters } = this.#context;
    const found = claimsOfNoNode({ view: this.#context.view, provider: this.#provider });
    for (const claim of found) {
      if (this.#logged.has(claim)) continue;
      counters.add("view.records_skipped", 1, { kind: "slot", code: "slot.unreadable" });
      const facts = { provider: this.#provider, claim };
      log.warn(facts, "a slot claim names no node: the slot stays unused until that znode is deleted");
    }
    this.#logged = new Set(found);
  }

  /** Whether nothing of the provider is left: no backing node, node, folder or request. */
  #isDrained(): boolean {
    const { slots, nodes, requests } = this.#context.view;
    if (this.#backings().length > 0 || nodes.byProvider.count(this.#provider) > 0) return false;
    if ([...slots.folders.values()].includes(this.#provider)) return false;
    return requests.byRequestor.get(backingOwner(this.#provider)).size === 0;
  }

  /** Has the driver compare slivers with claims, in the background and one comparison at a time: a machine that hangs delays nothing else. */
  #compareMachines(): void {
    const { slots } = this.#open.provider.offers ?? {};
    if (slots === undefined || this.#comparing !== undefined || this.#closed) return;
    const stop = new AbortController();
    this.#comparing = stop;
    const late = () => new DriverError("timeout", `not compared within ${COMPARE_MS} ms`);
    const limit = deadline(this.#context.clock, COMPARE_MS, late, stop.signal);
    void slots
      .compare(limit.signal)
      .catch((error: unknown) => {
        const facts = { provider: this.#provider, error: messageOf(error) };
        this.#context.log.debug(
          facts,
          "cannot compare what is on backing nodes with their slots; will retry",
        );
      })
      .finally(() => {
        limit.cancel();
        this.#comparing = undefined;
      });
  }

  /** The actions without those in their pause after a failure. Pauses of actions that are not planned any more are forgotten. */
  #due(actions: readonly OwnerAction[]): readonly OwnerAction[] {
    const keys = new Set(actions.map(keyOf));
    for (const key of this.#retries.keys()) if (!keys.has(key)) this.#retries.delete(key);
    const now = this.#context.clock.monotonic();
    return actions.filter((action) => (this.#retries.get(keyOf(action))?.at ?? 0) <= now);
  }

  #nextRetry(): number {
    const now = this.#context.clock.monotonic();
    return Math.min(...[...this.#retries.values()].map(({ at }) => at - now), Number.POSITIVE_INFINITY);
  }

  async #attempt(action: OwnerAction): Promise<void> {
    const { clock, random } = this.#context;
    const key = keyOf(action);
    const attempt = (this.#retries.get(key)?.attempt ?? -1) + 1;
    try {
      if ((await carryOut(this.#parts, action, this.#election.check())) === "done") {
        this.#retries.delete(key);
        if (action.type === "adopt") this.#failures.end(action.label);
        return;
      }
    } catch (error) {
      this.#note(key, error, attempt);
    }
    this.#retries.set(key, { at: clock.monotonic() + backoff(random, attempt, 50, 10_000), attempt });
  }

  /** When a backing node was last used; a node that this process has not seen before counts from now. */
  #usedAt(backing: string): number {
    const known = this.#lastUsed.get(backing);
    if (known !== undefined) return known;
    const now = this.#context.clock.monotonic();
    this.#lastUsed.set(backing, now);
    return now;
  }

  async #unlockForgotten(): Promise<void> {
    try {
      await unlockForgotten(this.#parts, () => this.#election.check());
    } catch (error) {
      this.#note("unlock", error, 0);
    }
  }

  /** Logs a failure. A lost race with another client is normal and becomes a warning only when it repeats. */
  #note(what: string, error: unknown, attempt: number): void {
    const overtaken = error instanceof FenceLost || error instanceof TreeError;
    const level = overtaken && attempt < 5 ? "debug" : "warn";
    const facts = { provider: this.#provider, what, attempt, error: messageOf(error) };
    this.#context.log[level](facts, "cannot reconcile backing nodes; will retry");
  }
}
