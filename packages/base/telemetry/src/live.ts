import type { Clock } from "@nodeyard/runtime";

/** The step of a controller that has nothing to do now: `until` is when it looks again. */
export const RESTS = "rests";

/** A controller that is this late is stuck, milliseconds: far longer than a busy machine makes it wait. */
const STUCK_MS = 300_000;

/** Work that has begun and not ended. All times are monotonic milliseconds. */
export interface LiveWork {
  /** `task`: something the scheduler ordered. `controller`: what keeps something true. `machine`: a driver's steps. `worker`: a build or upload. */
  readonly kind: "task" | "controller" | "machine" | "worker";
  /** The kind of work and its subject: `accept 100-0000000004`. */
  readonly name: string;
  /** The source file that awaits, below the room's folder; together with `step` it names the place. */
  readonly site: string;
  readonly since: number;
  /** What it awaits, for people; `RESTS` for a controller that has nothing to do. */
  readonly step: string;
  readonly stepSince: number;
  /** The deadline of the current step; absent: the work has its deadline elsewhere, or none. */
  readonly until?: number;
  /** Lock contenders that it holds. */
  readonly locks: readonly string[];
}

/** The handle by which a piece of work reports its current step. */
export class LiveTask implements LiveWork {
  readonly kind: LiveWork["kind"];
  readonly name: string;
  readonly site: string;
  readonly since: number;
  step = "begun";
  stepSince: number;
  until?: number;
  locks: readonly string[] = [];
  readonly #clock: Clock;

  constructor({ kind, name, site }: Pick<LiveWork, "kind" | "name" | "site">, clock: Clock) {
    this.kind = kind;
    this.name = name;
    this.site = site;
    this.#clock = clock;
    this.since = this.stepSince = clock.monotonic();
  }

  /** Sets the step that the work awaits now, and its deadline in milliseconds from now. */
  at(step: string, withinMs?: number): void {
    this.step = step;
    this.stepSince = this.#clock.monotonic();
    if (withinMs === undefined || withinMs === Number.POSITIVE_INFINITY) delete this.until;
    else this.until = this.stepSince + withinMs;
  }

  /** It waits for something to do, and looks again after `ms` at the latest. */
  rests(ms?: number): void {
    this.at(RESTS, ms);
  }

  /** Adds the contender of a lock, for the dump; it stays listed until the work ends. */
  holds(lock: string): void {
    this.locks = [...this.locks, lock];
  }
}

/**
 * The work in progress and the waiting controllers of a process, as they report it themselves: an await that never ends has no stack
 * that could be read. Reporting costs a few assignments; only the stack dump reads it. An entry that is never ended stays in each
 * dump, and so shows the fault.
 */
export class Live {
  readonly #clock: Clock;
  readonly #tasks = new Set<LiveTask>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Does `work`, which is live until it settles. */
  async during<T>(
    what: Pick<LiveWork, "kind" | "name" | "site">,
    work: (task: LiveTask) => Promise<T>,
  ): Promise<T> {
    const task = this.begin(what);
    try {
      return await work(task);
    } finally {
      this.end(task);
    }
  }

  /** Begins an entry that `end` must remove, in a `finally` or with its owner. */
  begin(what: Pick<LiveWork, "kind" | "name" | "site">): LiveTask {
    const task = new LiveTask(what, this.#clock);
    this.#tasks.add(task);
    return task;
  }

  end(task: LiveTask): void {
    this.#tasks.delete(task);
  }

  /** What a controller should have done long ago, for people; undefined: all of them look as often as they should. */
  stuck(): string | undefined {
    const now = this.#clock.monotonic();
    for (const { kind, name, step, until } of this.#tasks) {
      if (kind !== "controller" || until === undefined || now - until < STUCK_MS) continue;
      const late = `${Math.round((now - until) / 1000)} s`;
      return step === RESTS
        ? `the controller "${name}" should have looked again ${late} ago`
        : `the controller "${name}" should have given up ${late} ago (${step})`;
    }
    return undefined;
  }

  /** The oldest first. */
  list(): readonly LiveWork[] {
    return [...this.#tasks];
  }
}
