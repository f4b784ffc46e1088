import { backoff, defined, Gate, messageOf, settledWithin } from "@nodeyard/runtime";
import type { Action, SchedulerEvent } from "@nodeyard/scheduler";
import type { LiveTask } from "@nodeyard/telemetry";
import type { MinReady } from "./clients/min-ready.ts";
import { FailedTries } from "./failed-tries.ts";
import { checkNode } from "./nodes/check.ts";
import type { Deletions } from "./nodes/deletions.ts";
import type { RequestHandles } from "./nodes/handles.ts";
import { deallocateNode } from "./nodes/node-lock.ts";
import { suspendNode } from "./nodes/suspend.ts";
import type { Handled } from "./requests/finish.ts";
import { resetLost } from "./requests/finish.ts";
import { handleDecline, handleRequest } from "./requests/handler.ts";

/** Most nodes of one provider that are deleted at the same time. Thousands may be returned together, and each deletion holds memory. */
const DELETING = 256;
/** Most nodes that are checked at the same time: each check is a process. */
const CHECKING = 32;
/** Until a request whose plan did not come about is planned again, at most, milliseconds. */
const REPLAN_MS = 1_000;
/** Time for work that was aborted to end, milliseconds. */
const GIVE_UP_MS = 2_000;

/** The part of `Serving` by which actions on pools and providers are carried out. Neither call waits for the cloud. */
interface ProviderSide {
  setPaused(pool: string, paused: boolean): void;
  askQuota(provider: string): void;
}

/**
 * Carries out the scheduler's actions and reports how each ended. A task belongs to one session: when the session ends, its tasks are
 * aborted, and results that still arrive are ignored.
 */
export class Tasks {
  readonly #context: RequestHandles;
  readonly #report: (event: SchedulerEvent) => void;
  readonly #providers: ProviderSide;
  readonly #deletions: Deletions;
  readonly #minReadyRequests: Pick<MinReady, "request">;
  /** Each task's promise, and the id of its request, node or label, for the log when it has to be abandoned. */
  readonly #running = new Map<Promise<void>, string>();
  /** Tries in a row of requests, nodes and labels that the scheduler asked for again; deletions have their own in `Deletions`. */
  readonly #failures = new FailedTries();
  /** By provider, so that a cloud that hangs does not delay deletions of the others. */
  readonly #deleting = new Map<string, Gate>();
  readonly #checking = new Gate(CHECKING);
  /** Aborts the tasks of the present session. */
  #session = new AbortController();

  constructor(
    context: RequestHandles,
    report: (event: SchedulerEvent) => void,
    providers: ProviderSide,
    deletions: Deletions,
    minReady: Pick<MinReady, "request">,
  ) {
    this.#context = context;
    this.#deletions = deletions;
    this.#minReadyRequests = minReady;
    this.#report = report;
    this.#providers = providers;
  }

  /**
   * Starts an action. Its end is reported as an event, as far as the scheduler must know of it. Returns at once and never throws; the scheduler
   * counts the request or node as busy until the event arrives.
   */
  perform(action: Action): void {
    switch (action.type) {
      case "accept":
        return this.#run("accept", action.request, (signal, live) => this.#accept(action, signal, live));
      case "decline":
        return this.#run("decline", action.request, () =>
          this.#ending(
            action.request,
            handleDecline(this.#context, action.request, action.pools, action.reason),
          ),
        );
      case "reset":
        return this.#run("reset", action.request, () =>
          this.#ending(action.request, resetLost(this.#context, action.request)),
        );
      case "delete":
        return this.#run("delete", action.node, (signal, live) => this.#delete(action, signal, live));
      case "deallocate":
        return this.#run("deallocate", action.node, () => this.#deallocate(action.node));
      case "suspend":
        return this.#run("suspend", action.node, (signal) => this.#suspend(action, signal));
      case "check":
        return this.#run("check", action.node, (signal, live) => this.#check(action, signal, live));
      case "min-ready":
        return this.#run("min-ready", action.label, () => this.#minReady(action.label, action.count));
      case "pause":
        return this.#providers.setPaused(action.pool, action.paused);
      case "slot":
        return this.#context.slots.take(action);
      case "ask-quota":
        return this.#providers.askQuota(action.provider);
      case "launch":
      case "refuse-launch":
        return this.#context.launches.answer(action);
      case "label-changed":
        return this.#reportLabel(action);
      case "budget-changed":
        return this.#reportBudget(action);
    }
  }

  #reportLabel({ label, change, facts }: Extract<Action, { type: "label-changed" }>): void {
    const { journal, counters } = this.#context;
    journal.write({ event: change === "works" ? "label.open" : "label.closed", facts });
    counters.add("launcher.label_budgets", 1, { label, change });
  }

  #reportBudget({ tenant, level, facts }: Extract<Action, { type: "budget-changed" }>): void {
    const { journal, counters } = this.#context;
    journal.write({ event: `budget.${level}`, facts });
    counters.add("launcher.budgets", 1, { tenant, level });
  }

  /**
   * Aborts all tasks of a lost session. Their locks ended with the session, so nothing is released; another launcher may hold the same
   * requests already.
   */
  abandon(): void {
    this.#session.abort(new Error("the session with the tree ended"));
    this.#session = new AbortController();
  }

  /**
   * Resolves when all tasks have ended. When `signal` aborts, so do the tasks; those that do not end in time are abandoned. Tasks that
   * are started meanwhile are waited for, too.
   */
  async drain(signal: AbortSignal): Promise<void> {
    const abort = () => this.#session.abort(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    while (this.#running.size > 0 && !signal.aborted)
      await Promise.race([Promise.all(this.#running.keys()), aborted(signal)]);
    signal.removeEventListener("abort", abort);
    const { clock, log } = this.#context;
    const remaining = Promise.all(this.#running.keys());
    if (!(await settledWithin(clock, GIVE_UP_MS, remaining)))
      log.warn(
        { ids: this.list().slice(0, 20), count: this.#running.size },
        "abandoned work that did not stop in time",
      );
  }

  /** Ids of the requests and nodes with a task. */
  list(): readonly string[] {
    return [...this.#running.values()];
  }

  /** Runs a task, listed for the stack dump. A result that arrives after the session ended is ignored: the next session decides anew. */
  #run(
    what: Action["type"],
    id: string,
    work: (signal: AbortSignal, live: LiveTask) => Promise<SchedulerEvent>,
  ): void {
    // Taken now: a task that outlives its session must not report into the next one.
    const { signal } = this.#session;
    const subject = { kind: "task", name: `${what} ${id}`, site: "launcher/tasks.ts" } as const;
    const task = this.#context.live
      .during(subject, (live) => work(signal, live))
      // Tasks catch what they expect. Anything that arrives here is a fault of the program: the id stays busy, so that it is not repeated in a
      // loop.
      .catch((error): SchedulerEvent | undefined => {
        this.#context.counters.add("launcher.unexpected", 1, { place: "task" });
        this.#context.log.error(
          { id, error: messageOf(error), stack: (error as Error)?.stack },
          "a task failed unexpectedly",
        );
        return undefined;
      })
      .then((event) => {
        this.#running.delete(task);
        if (event !== undefined && !signal.aborted) this.#report(event);
      });
    this.#running.set(task, id);
  }

  async #accept(
    action: Extract<Action, { type: "accept" }>,
    signal: AbortSignal,
    live: LiveTask,
  ): Promise<SchedulerEvent> {
    // The pool may have left the configuration since the plan was made. Nothing was written, so the request is planned again.
    const pool = this.#context.pools.get(action.pool);
    if (pool === undefined) return { type: "handled", request: action.request };
    const started = () => {
      if (!signal.aborted) this.#report({ type: "started", request: action.request });
    };
    const work = handleRequest(this.#context, pool, action.request, action, signal, { live, started });
    // A provider that is replaced is closed only when the work in this set has ended.
    const noted = work.catch(() => {}).finally(() => pool.open.work.delete(noted));
    pool.open.work.add(noted);
    return this.#ending(action.request, work);
  }

  /** Waits for the work on a request, and reports its end: whether the scheduler plans the request again, and after which pause. */
  async #ending(request: string, work: Promise<Handled>): Promise<SchedulerEvent> {
    // "busy" and "changed" are outcomes of a race that another launcher won; only "lost" leaves open what the tree has now.
    let outcome: Handled;
    try {
      outcome = await work;
    } catch (error) {
      this.#context.log.warn({ request, error: messageOf(error) }, "work on a request failed; will retry");
      outcome = "lost";
    }
    this.#context.counters.add("launcher.requests", 1, { outcome });
    if (outcome === "vanished")
      this.#context.journal.write({ event: "request.withdrawn", request, facts: {} });
    if (outcome === "replan" || outcome === "busy" || outcome === "lost") {
      // "lost": a write may have been applied, so the record has to be looked at again. "replan": the request keeps its place in the queue, and
      // is back soon: another launcher took the room for which it was first in line here, and would do so again during a long pause.
      const [unsure, putBack] = [outcome === "lost", outcome === "replan"];
      const retryMs = this.#retry(request, 200, putBack ? REPLAN_MS : 30_000);
      return { type: "handled", request, retryMs, unsure, putBack };
    }
    this.#failures.end(request);
    return { type: "handled", request };
  }

  async #delete(
    { node, version, why }: Extract<Action, { type: "delete" }>,
    signal: AbortSignal,
    live: LiveTask,
  ): Promise<SchedulerEvent> {
    live.at("waits for its turn at the provider");
    const provider = this.#context.view.nodes.byId.get(node)?.record.provider ?? "";
    const retryMs = await this.#gateOf(provider).run(async () => {
      live.at("deletes");
      return signal.aborted ? undefined : this.#deletions.delete(node, { version, why }, signal, live);
    });
    return { type: "deleted", node, ...defined({ retryMs }) };
  }

  /** One gate for each provider name that ever had a deletion; names come from records and configuration, so they are few. */
  #gateOf(provider: string): Gate {
    const gate = this.#deleting.get(provider) ?? new Gate(DELETING);
    this.#deleting.set(provider, gate);
    return gate;
  }

  /** False and a rejection are the same here: the node stays as it is, and the scheduler asks again after the pause. */
  async #deallocate(node: string): Promise<SchedulerEvent> {
    const done = await deallocateNode(this.#context, node).catch(() => false);
    if (!done) return { type: "deallocated", node, retryMs: this.#retry(node, 250, 30_000) };
    this.#failures.end(node);
    return { type: "deallocated", node };
  }

  async #suspend(
    { node, label, version }: Extract<Action, { type: "suspend" }>,
    signal: AbortSignal,
  ): Promise<SchedulerEvent> {
    const result = await suspendNode(this.#context, node, version, signal);
    const ended = { type: "suspended", node, label, refused: result === "refused" } as const;
    return result === "busy" ? { ...ended, retryMs: this.#retry(node, 250, 30_000) } : ended;
  }

  async #check(
    { node, version }: Extract<Action, { type: "check" }>,
    signal: AbortSignal,
    live: LiveTask,
  ): Promise<SchedulerEvent> {
    live.at("waits for its turn");
    const result = await this.#checking.run(() => {
      live.at("checks");
      return checkNode(this.#context, node, version, signal);
    });
    if (result === "busy") return { type: "checked", node, retryMs: this.#retry(node, 250, 30_000) };
    this.#failures.end(node);
    return { type: "checked", node };
  }

  async #minReady(label: string, count: number): Promise<SchedulerEvent> {
    const key = `label ${label}`;
    try {
      await this.#minReadyRequests.request(label, count);
      this.#failures.end(key);
      return { type: "min-ready-requested", label };
    } catch (error) {
      this.#context.log.warn(
        { label, error: messageOf(error) },
        "cannot write min-ready requests; will retry",
      );
      return { type: "min-ready-requested", label, retryMs: this.#retry(key, 1_000, 60_000) };
    }
  }

  /** Counts a failure of `key` and returns the pause before the next attempt, which grows from `base` to `cap` milliseconds. */
  #retry(key: string, base: number, cap: number): number {
    const { failed } = this.#failures.add(key, this.#context.clock.monotonic());
    return backoff(this.#context.random, failed - 1, base, cap);
  }
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
