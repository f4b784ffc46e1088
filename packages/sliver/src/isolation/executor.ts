import { type Clock, deadline } from "@nodeyard/runtime";
import type { StepKind, Task } from "../core/plan.ts";
import { LenderStuckError, StepTimeoutError, StoppingError } from "../errors.ts";
import type { BackEnd } from "./contract.ts";

/** At most so many at a time; the others wait in order. What waits is bounded by who asks: one task per incarnation. */
export class Permits {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Resolves to what gives the permit back; calling that twice does nothing. */
  async take(): Promise<() => void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    };
  }
}

export interface ExecutorOptions {
  /** How many slivers may be in one kind of step at the same time. */
  readonly parallel: Readonly<Record<StepKind, number>>;
  /** Milliseconds that a step may take. */
  readonly deadlines: Readonly<Record<StepKind, number>>;
}

export const EXECUTOR_DEFAULTS: ExecutorOptions = {
  parallel: { create: 2, configure: 4, start: 4, stop: 4, destroy: 2 },
  deadlines: { create: 900_000, configure: 60_000, start: 120_000, stop: 60_000, destroy: 300_000 },
};

export interface Outcome {
  readonly task: Task;
  /** Absent when every step worked. */
  readonly error?: unknown;
  readonly failedStep?: StepKind;
  /** Of the last configure, where there was one. */
  readonly unenforced?: readonly string[];
}

/** A task that goes on. Times are monotonic milliseconds. */
export interface Busy {
  readonly task: Task;
  /** "waiting": for other tasks, or for its turn. */
  readonly step: StepKind | "waiting";
  readonly since: number;
  readonly stepSince: number;
  /** When the step is given up; absent while it waits. */
  readonly until?: number;
}

interface Running extends Busy {
  step: Busy["step"];
  stepSince: number;
  until?: number;
  readonly done: Promise<Outcome>;
}

/** Carries tasks out: one at a time per incarnation, different ones beside each other, never under a global lock. */
export class Executor {
  readonly #backEnd: BackEnd;
  readonly #clock: Clock;
  readonly #options: ExecutorOptions;
  readonly #permits: Readonly<Record<StepKind, Permits>>;
  readonly #running = new Map<number, Running>();
  readonly #stop = new AbortController();

  constructor(backEnd: BackEnd, clock: Clock, options: ExecutorOptions = EXECUTOR_DEFAULTS) {
    this.#backEnd = backEnd;
    this.#clock = clock;
    this.#options = options;
    const { create, configure, start, stop, destroy } = options.parallel;
    this.#permits = {
      create: new Permits(create),
      configure: new Permits(configure),
      start: new Permits(start),
      stop: new Permits(stop),
      destroy: new Permits(destroy),
    };
  }

  /** Incarnations with a task, and the step that each is in. */
  get busy(): ReadonlyMap<number, Busy> {
    return this.#running;
  }

  /**
   * Begins a task; undefined when its incarnation has one already, which the next plan takes into account. The promise
   * never rejects, and resolves only when the back end has let go of the incarnation.
   */
  submit(task: Task): Promise<Outcome> | undefined {
    if (this.#stop.signal.aborted || this.#running.has(task.incarnation)) return undefined;
    const givers = task.after.flatMap((incarnation) => this.#running.get(incarnation)?.done ?? []);
    let begin: () => void = () => undefined;
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const done = begun
      .then(() => this.#carryOut(task, givers))
      .finally(() => this.#running.delete(task.incarnation));
    const since = this.#clock.monotonic();
    this.#running.set(task.incarnation, { task, step: "waiting", since, stepSince: since, done });
    begin();
    return done;
  }

  /** Resolves at the next end of a task; at once when there is none. */
  async nextEnd(): Promise<void> {
    if (this.#running.size > 0) await Promise.race([...this.#running.values()].map(({ done }) => done));
  }

  /** Aborts what runs and resolves when the back end has let go of everything. */
  async close(): Promise<void> {
    this.#stop.abort(new StoppingError());
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  async #carryOut(task: Task, givers: readonly Promise<Outcome>[]): Promise<Outcome> {
    const failed = (await Promise.all(givers)).find(({ error }) => error !== undefined);
    if (failed !== undefined) {
      const message = `${task.name} waits for ${failed.task.name}, which could not give back what it borrowed`;
      return { task, error: new LenderStuckError(message) };
    }
    let unenforced: readonly string[] | undefined;
    for (const step of task.steps) {
      try {
        unenforced = (await this.#step(task, step)) ?? unenforced;
      } catch (error) {
        return { task, error, failedStep: step };
      }
    }
    return unenforced === undefined ? { task } : { task, unenforced };
  }

  async #step(task: Task, step: StepKind): Promise<readonly string[] | undefined> {
    this.#note(task, "waiting");
    const release = await this.#permits[step].take();
    const limit = this.#options.deadlines[step];
    this.#note(task, step, limit);
    const late = () => new StepTimeoutError(`${step} of ${task.name} took more than ${limit / 1000} s`);
    const timer = deadline(this.#clock, limit, late, this.#stop.signal);
    // A step that ignores its signal blocks its own sliver, and must not block the others.
    timer.signal.addEventListener("abort", release, { once: true });
    try {
      timer.signal.throwIfAborted();
      return await this.#perform(task, step, timer.signal);
    } catch (error) {
      throw timer.signal.aborted ? timer.signal.reason : error;
    } finally {
      timer.cancel();
      release();
    }
  }

  #note({ incarnation }: Task, step: Busy["step"], limitMs?: number): void {
    const running = this.#running.get(incarnation);
    if (running === undefined) return;
    running.step = step;
    running.stepSince = this.#clock.monotonic();
    if (limitMs === undefined) delete running.until;
    else running.until = running.stepSince + limitMs;
  }

  async #perform(task: Task, step: StepKind, signal: AbortSignal): Promise<readonly string[] | undefined> {
    const ref = { index: task.index, incarnation: task.incarnation };
    switch (step) {
      case "create":
        await this.#backEnd.create(task.config!, signal);
        return undefined;
      case "configure":
        return (await this.#backEnd.configure(task.config!, signal)).unenforced;
      case "start":
        await this.#backEnd.start(task.config!, signal);
        return undefined;
      case "stop":
        await this.#backEnd.stop(ref, signal);
        return undefined;
      case "destroy":
        await this.#backEnd.destroy(ref, signal);
        return undefined;
    }
  }
}
