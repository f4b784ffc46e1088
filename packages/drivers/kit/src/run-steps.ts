import { type Clock, sleep } from "@nodeyard/runtime";
import { asDriverError, DriverError } from "./errors.ts";
import type { ExternalId } from "./tags.ts";

/** A step of a create or a delete. It is yielded before the work of the step starts. */
export interface Step {
  /** A short name, shown by `explain` and in metrics: "server", "wait", "floating-ip". */
  readonly step: string;
  /** Time limit up to the next yield, milliseconds. The runner aborts the signal when it has passed. */
  readonly deadlineMs: number;
  /** Saved durably before the runner continues. `externalId` goes to the node record. */
  readonly save?: { readonly externalId?: ExternalId };
  /** The step changes nothing outside, so what it saves may be saved while it runs (`RunOptions.savesResult`). */
  readonly onlyLooks?: boolean;
  /** A fact about the machine that explains its end or its faults, for operators. It is kept in the journal. */
  readonly remark?: string;
}

/** The context that the runner passes to a driver's steps. */
export interface StepContext {
  /** Every await in a step must end when this aborts. */
  readonly signal: AbortSignal;
  /** The id that was saved last for this node, by this process or an earlier one. */
  readonly externalId: ExternalId | null;
  /** For `remove`: its user gave the node back, and said that the job ended well. Absent: nobody gave it back. */
  readonly returned?: "well" | "back";
  /** For a handover: the request that gets the node. */
  readonly request?: string;
}

/** Options of a run. */
export interface RunOptions {
  readonly clock: Clock;
  /** Ends the run at once; the run rejects with this signal's reason. */
  readonly signal: AbortSignal;
  /** The id that was saved last for this node; null when none was. */
  readonly externalId: ExternalId | null;
  /** Saves the id durably. The driver continues only after it has resolved; its error ends the run unchanged. */
  save(externalId: ExternalId): Promise<void>;
  /** The caller saves the id of the result: one that is there at once is not saved before, which would be another commit. */
  readonly savesResult?: boolean;
  /**
   * Awaited before each step, the first included: a step is an effect, and its caller may have lost the right to it. When it rejects the
   * step does not begin and the run rejects with a DriverError whose cause it is. A run that was aborted does not wait for it.
   */
  before?(): Promise<void>;
  /** Called before each step: for `explain`, metrics and the journal. */
  onStep?(step: Step): void;
}

/** Time limit before the driver's first yield, in which it looks up what exists, milliseconds. */
const FIRST_DEADLINE_MS = 60_000;
/** The last step of a driver that answers at once takes no longer, milliseconds. */
const AT_ONCE_MS = 1;
/** How long the runner waits for an aborted step to end, milliseconds. */
const CLOSE_MS = 1_000;

/**
 * Runs a create or delete to its end. `start` receives the context for the driver. The context's signal aborts when the deadline of a
 * step passes or the caller's signal aborts, and never after a successful run.
 *
 * Rejects with a DriverError: the driver's own, `timeout` for a step past its deadline, or `fatal` for any other error of the driver. It
 * also rejects with the error of `save` and with the reason of the caller's signal. The generator is always closed. A driver that ignores
 * the abort is abandoned after a second; a machine that it still makes is found by its tag.
 */
export async function runSteps<T>(
  start: (context: StepContext) => AsyncGenerator<Step, T, void>,
  options: RunOptions,
): Promise<T> {
  const { clock, signal } = options;
  signal.throwIfAborted();
  const run = new Run(clock, signal);
  const steps = start({ signal: run.signal, externalId: options.externalId });
  const advance = async () => {
    await options.before?.();
    run.signal.throwIfAborted();
    return steps.next();
  };
  let current = "start";
  let unsaved: ExternalId | undefined;
  try {
    run.arm(current, FIRST_DEADLINE_MS);
    for (;;) {
      const ahead = advance();
      if (unsaved !== undefined && !(await run.race(returnsAtOnce(clock, ahead))))
        await options.save(unsaved).catch(foreign);
      const next = await run.race(ahead);
      run.disarm();
      if (next.done) return next.value;
      const { step, deadlineMs, save, onlyLooks } = next.value;
      current = step;
      options.onStep?.(next.value);
      unsaved = options.savesResult && onlyLooks ? save?.externalId : undefined;
      if (save?.externalId !== undefined && unsaved === undefined)
        await options.save(save.externalId).catch(foreign);
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

/** Whether a driver has nothing left to do. */
async function returnsAtOnce(clock: Clock, ahead: Promise<IteratorResult<Step, unknown>>): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = clock.setTimer(AT_ONCE_MS, () => late.resolve(false));
  const done = ahead.then(
    (next) => next.done === true,
    () => false,
  );
  try {
    return await Promise.race([done, late.promise]);
  } finally {
    timer.cancel();
  }
}

/** Marks an error of `save`, so that it is not treated as an error of the driver. */
class Foreign {
  readonly error: unknown;
  constructor(error: unknown) {
    this.error = error;
  }
}

function foreign(error: unknown): never {
  throw new Foreign(error);
}

/** The deadline of the present step, and the signal that combines it with the caller's. */
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

  /** Aborts the work in progress and lets the driver's `finally` blocks run. */
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
