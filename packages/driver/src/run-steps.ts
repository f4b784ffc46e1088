import { type Clock, sleep } from "@nodeyard/runtime";
import { asDriverError, DriverError } from "./errors.ts";
import type { ExternalId } from "./tags.ts";

/** One step of a create or delete, yielded before it is done. */
export interface Step {
  /** A short name, shown by `explain` and in metrics: "server", "wait", "floating-ip". */
  readonly step: string;
  /** For what follows up to the next yield, milliseconds. The runner aborts the signal when it has passed. */
  readonly deadlineMs: number;
  /** Stored durably before the runner goes on. `externalId` goes to the node record. */
  readonly save?: { readonly externalId?: ExternalId };
  /** What the driver learnt of the machine that explains its end or its faults, in the words of an operator. It is kept in the journal. */
  readonly remark?: string;
}

/** What the runner hands to a driver's steps. */
export interface StepContext {
  /** Every await inside a step must end when this aborts. */
  readonly signal: AbortSignal;
  /** What was saved last for this node, by this process or by one before it. */
  readonly externalId: ExternalId | null;
}

/** How steps are run. */
export interface RunOptions {
  readonly clock: Clock;
  /** Ends the run at once; it then rejects with this signal's reason. */
  readonly signal: AbortSignal;
  /** What was saved last for this node; null when nothing was. */
  readonly externalId: ExternalId | null;
  /** Stores durably. The driver goes on only when it has resolved; what it rejects with ends the run, unchanged. */
  save(externalId: ExternalId): Promise<void>;
  /** Called before each step: for `explain`, metrics and the journal. */
  onStep?(step: Step): void;
}

/** For what a driver does before its first yield, milliseconds: looking up what exists already. */
const FIRST_DEADLINE_MS = 60_000;
/** How long an abandoned step may take to notice that it was, milliseconds. */
const CLOSE_MS = 1_000;

/**
 * Runs a create or delete to its end. `start` gets the context to hand to the driver; its signal aborts when a
 * step's deadline has passed or the caller's signal aborts, and never after the run has ended well.
 *
 * Rejects with a DriverError of the driver, `timeout` for a step past its deadline, `fatal` for anything that the driver threw
 * without a type; or with what `save` threw, or with the reason of the caller's signal. The generator is always closed: a
 * driver that ignores the abort is left behind after a second, and what it still makes is found by its tag.
 */
export async function runSteps<T>(
  start: (context: StepContext) => AsyncGenerator<Step, T, void>,
  options: RunOptions,
): Promise<T> {
  const { clock, signal } = options;
  signal.throwIfAborted();
  const run = new Run(clock, signal);
  const steps = start({ signal: run.signal, externalId: options.externalId });
  let current = "start";
  try {
    run.arm(current, FIRST_DEADLINE_MS);
    for (;;) {
      const next = await run.race(steps.next());
      run.disarm();
      if (next.done) return next.value;
      const { step, deadlineMs, save } = next.value;
      current = step;
      options.onStep?.(next.value);
      if (save?.externalId !== undefined) await options.save(save.externalId).catch(foreign);
      signal.throwIfAborted();
      run.arm(step, deadlineMs);
    }
  } catch (error) {
    await run.close(steps, error);
    if (error instanceof Foreign) throw error.error;
    if (run.signal.aborted) throw run.signal.reason;
    throw asDriverError(error, `step ${current}`);
  } finally {
    run.end();
  }
}

/** Marks what `save` threw, so that it is not taken for a fault of the driver. */
class Foreign {
  readonly error: unknown;
  constructor(error: unknown) {
    this.error = error;
  }
}

function foreign(error: unknown): never {
  throw new Foreign(error);
}

/** The deadline of the step under way, and the signal that it and the caller share. */
class Run {
  readonly #clock: Clock;
  readonly #parent: AbortSignal;
  readonly #controller = new AbortController();
  readonly #aborted = Promise.withResolvers<never>();
  readonly #onParent = () => this.#abort(this.#parent.reason);
  #timer: { cancel(): void } | undefined;

  constructor(clock: Clock, parent: AbortSignal) {
    this.#clock = clock;
    this.#parent = parent;
    this.#aborted.promise.catch(() => {});
    parent.addEventListener("abort", this.#onParent, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  arm(step: string, ms: number): void {
    if (ms === Number.POSITIVE_INFINITY) return;
    const late = () => this.#abort(new DriverError("timeout", `step ${step} took longer than ${ms} ms`));
    this.#timer = this.#clock.setTimer(ms, late);
  }

  disarm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  race<V>(work: Promise<V>): Promise<V> {
    return Promise.race([work, this.#aborted.promise]);
  }

  /** Aborts what is still under way and lets the driver's `finally` blocks run. */
  async close(steps: AsyncGenerator<Step, unknown, void>, why: unknown): Promise<void> {
    this.disarm();
    if (!this.signal.aborted) {
      if (!(why instanceof Foreign)) {
        await steps.return(undefined).catch(() => {});
        return;
      }
      this.#controller.abort(why.error);
    }
    const patience = new AbortController();
    const closed = steps.return(undefined).catch(() => {});
    await Promise.race([closed, sleep(this.#clock, CLOSE_MS, patience.signal).catch(() => {})]);
    patience.abort();
  }

  end(): void {
    this.disarm();
    this.#parent.removeEventListener("abort", this.#onParent);
  }

  #abort(reason: unknown): void {
    this.#controller.abort(reason);
    this.#aborted.reject(reason);
  }
}
