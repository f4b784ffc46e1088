import { abortable, type Clock, deadline, Gate } from "@nodeyard/runtime";
import type { StepKind, Task } from "../core/plan.ts";
import { LenderStuckError, StepTimeoutError, StoppingError } from "../errors.ts";
import type { BackEnd } from "./contract.ts";

/**
 * How many slivers may be in the same kind of step at once, and milliseconds: the step's time limit, and how long it holds its place among
 * the others of its kind. Beyond that it goes on without one: a sliver whose SSH server never answers, or whose processes resist their end,
 * must not keep others waiting.
 */
const STEPS: Readonly<Record<StepKind, { atOnce: number; limit: number; place?: number }>> = {
  create: { atOnce: 2, limit: 900_000 },
  configure: { atOnce: 4, limit: 60_000 },
  start: { atOnce: 4, limit: 120_000, place: 5_000 },
  stop: { atOnce: 4, limit: 60_000, place: 20_000 },
  destroy: { atOnce: 2, limit: 300_000, place: 20_000 },
};

/** The result of a task. */
export interface Outcome {
  readonly task: Task;
  /** Absent when all steps succeeded. */
  readonly error?: unknown;
  readonly failedStep?: StepKind;
  /** From the last configure, if there was one. */
  readonly unenforced?: readonly string[];
  /** The steps that started, a failed one last; wall time in milliseconds since the epoch. */
  readonly ran: readonly { readonly step: StepKind; readonly start: number; readonly end: number }[];
}

/** A task in progress. Times are monotonic milliseconds. */
export interface Busy {
  readonly task: Task;
  /** "waiting": for other tasks or for its turn. */
  readonly step: StepKind | "waiting";
  readonly since: number;
  readonly stepSince: number;
  /** When the step times out; absent while it waits. */
  readonly until?: number;
}

interface Running extends Busy {
  step: Busy["step"];
  stepSince: number;
  until?: number;
  readonly done: Promise<Outcome>;
}

/** Runs tasks: one at a time per incarnation, tasks of different incarnations in parallel, without a global lock. */
export class Executor {
  readonly #backEnd: BackEnd;
  readonly #clock: Clock;
  readonly #gates = Object.fromEntries(
    Object.entries(STEPS).map(([step, { atOnce }]) => [step, new Gate(atOnce)]),
  ) as Readonly<Record<StepKind, Gate>>;
  /** By incarnation: what was submitted and has not ended, waiting tasks too. */
  readonly #running = new Map<number, Running>();
  readonly #stop = new AbortController();

  constructor(backEnd: BackEnd, clock: Clock) {
    this.#backEnd = backEnd;
    this.#clock = clock;
  }

  /** Incarnations with a task, and their present steps. */
  get busy(): ReadonlyMap<number, Busy> {
    return this.#running;
  }

  /**
   * Starts a task; undefined when its incarnation has one already, which the next plan will take into account. The promise never rejects,
   * and resolves only when the back end has finished with the incarnation.
   */
  submit(task: Task): Promise<Outcome> | undefined {
    if (this.#stop.signal.aborted || this.#running.has(task.incarnation)) return undefined;
    const givers = task.after.flatMap((incarnation) => this.#running.get(incarnation)?.done ?? []);
    // Deferred, so that the task is in the map before it starts.
    const done = Promise.resolve()
      .then(() => this.#carryOut(task, givers))
      .finally(() => this.#running.delete(task.incarnation));
    const since = this.#clock.monotonic();
    this.#running.set(task.incarnation, { task, step: "waiting", since, stepSince: since, done });
    return done;
  }

  /** Aborts all tasks and resolves when the back end has finished with them. */
  async close(): Promise<void> {
    const why = "the sliver manager is stopping; unfinished work continues after its next start";
    this.#stop.abort(new StoppingError(why));
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  /** Runs the steps in order up to the first failure. Never rejects. */
  async #carryOut(task: Task, givers: readonly Promise<Outcome>[]): Promise<Outcome> {
    const failed = (await Promise.all(givers)).find(({ error }) => error !== undefined);
    if (failed !== undefined) {
      const message = `${task.name} waits for ${failed.task.name}, which could not give back what it borrowed`;
      return { task, error: new LenderStuckError(message), ran: [] };
    }
    let unenforced: readonly string[] | undefined;
    const ran: Outcome["ran"][number][] = [];
    for (const step of task.steps) {
      const start = this.#clock.now();
      try {
        unenforced = (await this.#step(task, step)) ?? unenforced;
      } catch (error) {
        return { task, error, failedStep: step, ran: [...ran, { step, start, end: this.#clock.now() }] };
      }
      ran.push({ step, start, end: this.#clock.now() });
    }
    return unenforced === undefined ? { task, ran } : { task, unenforced, ran };
  }

  /** Waits for a place among the steps of its kind, then runs it with its time limit. */
  async #step(task: Task, step: StepKind): Promise<readonly string[] | undefined> {
    this.#note(task, "waiting");
    let work: Promise<readonly string[] | undefined> | undefined;
    const perform = async () => {
      const { limit, place: held = limit } = STEPS[step];
      this.#note(task, step, limit);
      const late = () => new StepTimeoutError(`${step} of ${task.name} took more than ${limit / 1000} s`);
      const { signal, cancel } = deadline(this.#clock, limit, late, this.#stop.signal);
      work = this.#perform(task, step, signal).finally(cancel);
      // A step that ignores its signal blocks its own sliver, but must not block others, so its place is free again.
      const place = deadline(this.#clock, held, late, signal);
      await abortable(work, place.signal).catch(() => undefined);
      place.cancel();
    };
    // A client waits for a sliver that is made; one that ended by itself may do so again and again.
    await this.#gates[step].run(perform, undefined, task.steps.includes("create"));
    return await work;
  }

  #note({ incarnation }: Task, step: Busy["step"], limitMs?: number): void {
    const running = this.#running.get(incarnation);
    if (running === undefined) return;
    running.step = step;
    running.stepSince = this.#clock.monotonic();
    if (limitMs === undefined) delete running.until;
    else running.until = running.stepSince + limitMs;
  }

  /** The back end's operation. After an abort the signal's reason is thrown, whatever the back end made of it. */
  async #perform(task: Task, step: StepKind, signal: AbortSignal): Promise<readonly string[] | undefined> {
    try {
      signal.throwIfAborted();
      if (step === "configure") return (await this.#backEnd.configure(task.config!, signal)).unenforced;
      if (step === "stop" || step === "destroy") await this.#backEnd[step](task, signal);
      else await this.#backEnd[step](task.config!, signal);
      return undefined;
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    }
  }
}
