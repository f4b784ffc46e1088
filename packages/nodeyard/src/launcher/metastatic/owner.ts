import { backoff, jitter, messageOf, type Timer } from "@nodeyard/runtime";
import { TreeError } from "@nodeyard/tree";
import { Election, FenceLost, settledWithin } from "../../coordination/index.ts";
import { backingOwner, slotsPath } from "../../operations/index.ts";
import type { ViewEvent } from "../../view/index.ts";
import { carryOut, type OwnerParts, unlockForgotten } from "./carry-out.ts";
import type { MetastaticLabelOwn } from "./config.ts";
import { keyOf, type OwnerAction } from "./draft.ts";
import type { SlotHandles } from "./handles.ts";
import { planOwner } from "./plan.ts";
import { senselessClaims } from "./plan-claims.ts";
import { labelOf } from "./plan-requests.ts";
import type { SlotIndex } from "./slot-index.ts";

const RESYNC_MS = 60_000;
/** Changes that come together are handled together. */
const GATHER_MS = 5;
const ASK_AGAIN_MS = 1_000;
/** What is under way at the end is waited for this long; without the election none of its writes is carried out. */
const CLOSE_MS = 2_000;
/** Labels of a provider that is no longer configured. */
const nothing: ReadonlyMap<string, MetastaticLabelOwn> = new Map();

/**
 * Looks after the backing nodes of one metastatic provider: asks for them, takes them over, gives them back. Of several launchers only
 * the elected owner does it, and each of its writes demands that it still is. Level-triggered: it compares what should be with what is
 * whenever something of the provider changes, and every minute.
 */
export class Owner {
  readonly #parts: OwnerParts;
  readonly #context: SlotHandles;
  readonly #provider: string;
  readonly #labels: ReadonlyMap<string, MetastaticLabelOwn>;
  readonly #book: SlotIndex;
  readonly #election: Election;
  readonly #lastUsed = new Map<string, number>();
  readonly #askAfter = new Map<string, number>();
  /** Backing requests that failed in a row, by label. */
  readonly #failures = new Map<string, number>();
  /** Claims that name no node, by path: they have been logged. */
  #senseless: ReadonlySet<string> = new Set();
  #compare = true;
  /** What failed last, and when to try it again: by action. */
  readonly #retries = new Map<string, { readonly at: number; readonly attempt: number }>();
  #running: Promise<void> | undefined;
  #again = false;
  #timer: Timer | undefined;
  #wakeAt = Number.POSITIVE_INFINITY;
  #closed = false;
  /** Set while it drains. */
  #drained: (() => void) | undefined;

  constructor(parts: OwnerParts) {
    const { context, provider, labels, book } = parts;
    this.#parts = parts;
    this.#context = context;
    this.#provider = provider;
    this.#labels = labels;
    this.#book = book;
    this.#election = new Election(context, `metastatic:${provider}`, () => this.#onElection());
  }

  start(): void {
    this.#election.start();
    this.#wake(GATHER_MS);
  }

  /** Resolves when what it was doing has ended, or has been given up; another owner may be elected then. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    if (this.#running !== undefined) await settledWithin(this.#context.clock, CLOSE_MS, this.#running);
    await this.#election.close();
  }

  /**
   * The provider has left the configuration, and nobody else serves it: each backing node is given back as soon as it is empty, nothing
   * is asked for, idle nodes are taken out. `ended` is called once nothing of it is left.
   */
  drain(ended: () => void): void {
    this.#drained = ended;
    const used = [...this.#book.backings.keys()].filter((id) => !this.#book.isEmpty(id));
    if (used.length > 0)
      this.#context.log.warn(
        { provider: this.#provider, backing: used },
        "its provider left the configuration: its backing nodes are returned once their slots are",
      );
    this.#wake(0);
  }

  /** To be called with events of the provider, after the slot index. */
  onEvent(event: ViewEvent): void {
    if (event.type === "own" && event.after === undefined) {
      const place = slotsPath(event.path);
      if (place?.kind === "claim") this.#lastUsed.set(place.backing, this.#context.clock.monotonic());
      if (place?.kind === "folder") this.#lastUsed.delete(place.backing);
    }
    if (this.#isOthers(event)) this.#compare = true;
    if (event.type === "request") this.#noteFailure(event);
    this.#wake(GATHER_MS);
  }

  /** Claims and records go together in what we write: where one comes or goes alone, somebody else had a hand in it. */
  #isOthers(event: ViewEvent): boolean {
    if (event.type !== "node") return false;
    const { claims, ends } = this.#book;
    const claimed = claims.ofNode(event.id).length > 0;
    if (event.after === undefined) return claimed;
    return event.before === undefined && !claimed && ends.get(event.id)?.place !== undefined;
  }

  #onElection(): void {
    this.#compare = true;
    // What became empty before we were the owner is not known: its grace time starts anew.
    this.#lastUsed.clear();
    this.#wake(GATHER_MS);
  }

  #noteFailure({ before, after }: Extract<ViewEvent, { type: "request" }>): void {
    if (after?.record.state !== "failed" || before?.record.state === "failed") return;
    const label = labelOf(after.record, this.#labels);
    if (label === undefined) return;
    const failures = this.#failures.get(label) ?? 0;
    this.#failures.set(label, failures + 1);
    const pause = backoff(this.#context.random, failures, ASK_AGAIN_MS, RESYNC_MS);
    this.#askAfter.set(label, this.#context.clock.monotonic() + pause);
    const facts = { provider: this.#provider, label, request: after.id, retryMs: Math.round(pause) };
    this.#context.log.warn(facts, "every pool declined to make a backing node");
  }

  #wake(delayMs: number): void {
    if (this.#closed) return;
    if (this.#running !== undefined) {
      this.#again = true;
      return;
    }
    const { clock } = this.#context;
    const at = clock.monotonic() + delayMs;
    if (this.#timer !== undefined && this.#wakeAt <= at) return;
    this.#timer?.cancel();
    this.#wakeAt = at;
    this.#timer = clock.setTimer(delayMs, () => this.#run(), { background: true });
  }

  #run(): void {
    this.#timer = undefined;
    this.#again = false;
    let pause = RESYNC_MS;
    const name = `slots of ${this.#provider}`;
    this.#running = this.#context.live
      .during({ kind: "controller", name, site: "launcher/metastatic/owner.ts" }, () => this.#reconcile())
      .then((ms) => {
        pause = ms;
      })
      .finally(() => {
        this.#running = undefined;
        this.#wake(this.#again ? GATHER_MS : Math.max(1, pause));
      });
  }

  /** Does what is due. Resolves with after how many milliseconds to look again by time. */
  async #reconcile(): Promise<number> {
    const { view, ages, clock, random } = this.#context;
    if (view.complete && this.#isDrained()) this.#drained?.();
    if (!view.complete || !this.#election.leading) return jitter(random, RESYNC_MS);
    const compare = this.#compare;
    this.#compare = false;
    const { requests } = view;
    const owned = [...requests.byRequestor.get(backingOwner(this.#provider))];
    const { actions, nextAt } = planOwner({
      book: this.#book,
      provider: this.#provider,
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
      this.#tellSenseless();
      await this.#unlockForgotten();
      this.#parts.isolation.sweep();
    }
    const changed = due.some(({ type }) => type === "drop" || type === "reclaim");
    // Now and then what only a lost event would show.
    if (compare ? changed : nextAt - clock.monotonic() > RESYNC_MS) this.#compare = true;
    return Math.min(jitter(random, RESYNC_MS), nextAt - clock.monotonic(), this.#nextRetry());
  }

  /** Once for each: a slot less is offered for as long as such a claim stands. */
  #tellSenseless(): void {
    const { log, counters } = this.#context;
    const found = senselessClaims({ book: this.#book, provider: this.#provider });
    for (const claim of found) {
      if (this.#senseless.has(claim)) continue;
      counters.add("view.records_skipped", 1, { kind: "slot", code: "slot.unreadable" });
      const facts = { provider: this.#provider, claim };
      log.warn(facts, "a slot claim names no node: the slot stays unused until that znode is deleted");
    }
    this.#senseless = new Set(found);
  }

  #isDrained(): boolean {
    const { backings, ends, claims } = this.#book;
    if (backings.size > 0 || ends.size > 0) return false;
    if ([...claims.folders.values()].includes(this.#provider)) return false;
    return this.#context.view.requests.byRequestor.get(backingOwner(this.#provider)).size === 0;
  }

  /** Without those that failed just now; what is no longer to be done is forgotten. */
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
        if (action.type === "adopt") this.#failures.delete(action.label);
        return;
      }
    } catch (error) {
      this.#note(key, error, attempt);
    }
    this.#retries.set(key, { at: clock.monotonic() + backoff(random, attempt, 50, 10_000), attempt });
  }

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

  #note(what: string, error: unknown, attempt: number): void {
    const overtaken = error instanceof FenceLost || error instanceof TreeError;
    const level = overtaken && attempt < 5 ? "debug" : "warn";
    const facts = { provider: this.#provider, what, attempt, error: messageOf(error) };
    this.#context.log[level](facts, "cannot reconcile backing nodes; will retry");
  }
}
