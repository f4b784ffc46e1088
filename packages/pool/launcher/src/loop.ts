import { messageOf, type Timer } from "@nodeyard/runtime";
import {
  type Action,
  awaitedOffer,
  createState,
  type Durations,
  explain,
  type Outlook,
  type Output,
  outlooksOf,
  outlooksOfLabel,
  poolUse,
  providerUse,
  reduce,
  type SchedulerEvent,
  type State,
  type TenantUse,
  tenantUses,
  type Verdict,
} from "@nodeyard/scheduler";
import type { RequestEntry, UnreadableEntry, View, ViewEvent } from "@nodeyard/view";
import type { Handles } from "./handles.ts";

/** Of the view the loop only hears. */
type LoopHandles = Pick<Handles, "clock" | "ages" | "log" | "counters" | "journal"> & {
  readonly view: Pick<View, "follow">;
};

/**
 * Drives the scheduler: collects the events of one turn of the event loop, calls `reduce`, and starts the actions. It never waits, and
 * a turn has a bounded length: otherwise a launcher with much to do would answer ZooKeeper's pings too late and lose its session. An
 * error that `reduce` meets at an event is logged and counted, and the turn goes on without that event.
 */
export class Loop {
  readonly #context: LoopHandles;
  /** Starts an action and returns at once; its result comes back as an event. */
  #perform: (action: Action) => void = () => {};
  /** Changed only by `reduce`; everything else here only reads it. */
  readonly #state: State = createState();
  /** Events for the next turn. */
  #events: SchedulerEvent[] = [];
  /** A turn is queued as a microtask. */
  #queued = false;
  /** Set by `stop`: events are still taken in, so that requests in progress reach their end. */
  #stopping = false;
  #closed = false;
  /** The last value of the event `ages`, to report changes only. Starts as the scheduler's own state does. */
  #agesTrusted = true;
  /** Of the next turn without an event; each turn sets it anew. */
  #timer: Timer | undefined;

  /** Its parts push events into it, so it is made before them. */
  constructor(context: LoopHandles) {
    this.#context = context;
    context.view.follow((event) => this.#onView(event));
  }

  /** Sets what starts an action, before the first event comes. */
  carriedOutBy(perform: (action: Action) => void): void {
    this.#perform = perform;
  }

  /**
   * Adds an event to the next turn, which runs after the code that is running now. All events of one such moment make one turn, so a
   * burst of changes is planned once.
   */
  readonly push = (event: SchedulerEvent): void => {
    this.#events.push(event);
    if (this.#queued || this.#closed) return;
    this.#queued = true;
    queueMicrotask(() => this.#turn());
  };

  /** Passes an event of the view on, except for events that the scheduler does not use. Whether it is complete, the launcher tells. */
  #onView(event: ViewEvent): void {
    if (event.type === "own" || event.type === "standing" || event.type === "complete") return;
    if (event.type === "unreadable") return this.#pushUnreadable(event.before ?? event.after, event.after);
    this.push(event);
    if ((event.type === "node" || event.type === "request") && event.after === undefined)
      this.#context.ages.forgetAge(event.id);
    // Requests may have waited for the pool that is gone, or be declined by all that are left.
    if (event.type === "component" && event.after === undefined) this.push({ type: "sweep" });
  }

  /**
   * Unreadable nodes count against limits, and an unreadable request keeps its nodes. Other kinds concern no decision of the
   * scheduler.
   */
  #pushUnreadable(either: UnreadableEntry | undefined, after: UnreadableEntry | undefined): void {
    if (either?.kind !== "node" && either?.kind !== "request") return;
    this.push({ type: "unreadable", kind: either.kind, id: either.id, known: after?.known });
  }

  /** Why a request waits; undefined: it does not, or is not known here. */
  verdict(request: string): Verdict | undefined {
    return explain(this.#state, request);
  }

  /** Whether the request may not fail yet, although all registered pools declined it: a pool that may serve it left or is being opened. */
  awaitsOffer(request: Pick<RequestEntry, "id" | "record">): boolean {
    return awaitedOffer(this.#state, this.#context.ages.moment().steady, request) !== undefined;
  }

  /** What each pool of this launcher would do for a request now, with its position in the queue. */
  outlooks(request: RequestEntry, durations: Durations): readonly Outlook[] {
    return outlooksOf(this.#state, this.#context.ages.moment(), request, durations);
  }

  /** The same for a request with this one label that nobody has made. */
  outlooksOfLabel(label: string, durations: Durations): readonly Outlook[] {
    return outlooksOfLabel(this.#state, this.#context.ages.moment(), label, durations);
  }

  /** Sums of what the provider's nodes and planned launches take. */
  providerUse(provider: string): ReturnType<typeof providerUse> {
    return providerUse(this.#state, provider);
  }

  /** The same of one pool, by its key. */
  poolUse(key: string): ReturnType<typeof poolUse> {
    return poolUse(this.#state, key);
  }

  /** What tenants have and wait for, and their clients where `clients` says so. */
  tenants(clients: boolean): readonly TenantUse[] {
    return tenantUses(this.#state, clients);
  }

  /** Ids that controllers work on, and how much waits. */
  inspect(): {
    readonly handling: readonly string[];
    readonly busyNodes: readonly string[];
    readonly waiting: number;
  } {
    const { requests, busyNodes } = this.#state;
    return {
      handling: [...requests.handled],
      busyNodes: [...busyNodes],
      waiting: [...requests.waiting()].length,
    };
  }

  /** Starts no new work. Launches of requests in progress still get the scheduler's answer. */
  stop(): void {
    this.#stopping = true;
  }

  /** No turn runs after it. Events that are pushed later are dropped. */
  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  #turn(): void {
    this.#queued = false;
    if (this.#closed) return;
    const events = this.#events;
    this.#events = [];
    // First in the turn, because it decides whether the other events may lead to deletions by age.
    const { trusted } = this.#context.ages;
    if (trusted !== this.#agesTrusted) {
      this.#agesTrusted = trusted;
      events.unshift({ type: "ages", trusted });
      const facts = { treeTimeMs: Math.round(this.#context.ages.now()) };
      if (trusted) this.#context.log.info(facts, "three sweeps agree on the time: ages count again");
      else
        this.#context.log.error(
          facts,
          "the clock jumped: nothing is deleted by age until three sweeps agree",
        );
    }
    this.#context.counters.add("scheduler.turns", 1);
    const { ages, clock } = this.#context;
    const output = reduce(this.#state, events, ages.now(), clock.monotonic());
    for (const { at, error } of output.failures) {
      this.#context.counters.add("launcher.unexpected", 1, { place: "scheduler" });
      const facts = { at, error: messageOf(error), stack: (error as Error)?.stack };
      this.#context.log.error(facts, "the scheduler failed on an event; it is skipped");
    }
    for (const { request, verdict } of output.verdicts) {
      if (verdict === undefined) continue;
      this.#context.journal.write({ event: "request.waits", request, facts: { ...verdict } });
    }
    // While it stops, an accepted request goes on to its end, but nothing new is begun.
    for (const action of output.actions)
      if (!this.#stopping || action.type === "launch" || action.type === "refuse-launch")
        this.#perform(action);
    this.#wake(output);
  }

  /** Sets the timer of the next turn: at once when work is left, else when the next timer of the scheduler expires. */
  #wake(output: Output): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (output.more) this.#timer = this.#context.clock.setTimer(0, () => this.push({ type: "tick" }));
    else if (output.nextWake !== undefined) {
      // A later timer is reached in several turns.
      const ms = Math.max(1, Math.min(60_000, output.nextWake - this.#context.clock.monotonic()));
      this.#timer = this.#context.clock.setTimer(ms, () => this.push({ type: "tick" }), { background: true });
    }
  }
}
