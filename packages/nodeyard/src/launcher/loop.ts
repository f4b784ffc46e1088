import { messageOf, type Timer } from "@nodeyard/runtime";
import {
  type Action,
  createState,
  type Durations,
  explain,
  type Output,
  poolUse,
  providerUse,
  reduce,
  type SchedulerEvent,
  type Standing,
  type State,
  standingsOf,
  standingsOfLabel,
  type Verdict,
} from "../scheduler/index.ts";
import type { RequestEntry, UnreadableEntry, ViewEvent } from "../view/index.ts";
import type { Handles } from "./handles.ts";

/**
 * Drives the scheduler: gathers what happens within one turn of the event loop, reduces it, and hands the actions on.
 * Never waits; a turn is bounded, so that pings are answered in time however much there is to do.
 */
export class Loop {
  readonly #context: Pick<Handles, "clock" | "ages" | "log" | "counters" | "journal">;
  readonly #perform: (action: Action) => void;
  readonly #state: State = createState();
  #events: SchedulerEvent[] = [];
  #queued = false;
  #stopping = false;
  #closed = false;
  #agesTrusted = true;
  #timer: Timer | undefined;

  constructor(
    context: Pick<Handles, "clock" | "ages" | "log" | "counters" | "journal">,
    perform: (action: Action) => void,
  ) {
    this.#context = context;
    this.#perform = perform;
  }

  push(event: SchedulerEvent): void {
    this.#events.push(event);
    if (this.#queued || this.#closed) return;
    this.#queued = true;
    queueMicrotask(() => this.#turn());
  }

  /** The view's events are the scheduler's, but for what only others use. */
  pushView(event: ViewEvent): void {
    if (event.type === "own" || event.type === "complete") return;
    if (event.type === "unreadable") this.#pushUnreadable(event.before ?? event.after, event.after);
    else this.push(event);
  }

  #pushUnreadable(either: UnreadableEntry | undefined, after: UnreadableEntry | undefined): void {
    if (either?.kind !== "node" && either?.kind !== "request") return;
    this.push({ type: "unreadable", kind: either.kind, id: either.id, known: after?.known });
  }

  verdict(request: string): Verdict | undefined {
    return explain(this.#state, request);
  }

  /** Where a request stands in each pool here. */
  standings(request: RequestEntry, durations: Durations): readonly Standing[] {
    return standingsOf(this.#state, this.#context.ages.moment(), request, durations);
  }

  standingsOfLabel(label: string, durations: Durations): readonly Standing[] {
    return standingsOfLabel(this.#state, this.#context.ages.moment(), label, durations);
  }

  providerUse(provider: string): ReturnType<typeof providerUse> {
    return providerUse(this.#state, provider);
  }

  poolUse(key: string): ReturnType<typeof poolUse> {
    return poolUse(this.#state, key);
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

  /** Stops new work. Launches of work in progress are still answered. */
  stop(): void {
    this.#stopping = true;
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  #turn(): void {
    this.#queued = false;
    if (this.#closed) return;
    const events = this.#events;
    this.#events = [];
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
    for (const action of output.actions)
      if (!this.#stopping || action.type === "launch" || action.type === "refuse-launch")
        this.#perform(action);
    this.#wake(output);
  }

  #wake(output: Output): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (output.more) this.#timer = this.#context.clock.setTimer(0, () => this.push({ type: "tick" }));
    else if (output.nextWake !== undefined) {
      const ms = Math.max(1, Math.min(60_000, output.nextWake - this.#context.clock.monotonic()));
      this.#timer = this.#context.clock.setTimer(ms, () => this.push({ type: "tick" }), { background: true });
    }
  }
}
