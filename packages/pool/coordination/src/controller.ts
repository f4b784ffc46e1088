import { backoff, type Clock, jitter, messageOf, type Random, type Timer } from "@nodeyard/runtime";
import type { Live, LiveTask, Log } from "@nodeyard/telemetry";

/** No controller rests longer than this, milliseconds: a clock may jump, and a timer has a largest time. */
const LONGEST_MS = 3_600_000;
/** Pauses after failures of a controller that has neither a resync nor `failed`, milliseconds. */
const RETRY_MS = 500;
const RETRY_MOST_MS = 60_000;

/** What every controller needs: time, chance, the log, and the list that SIGUSR2 dumps. */
export interface ControllerHandles {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly live: Live;
}

/** The parts of a controller: its name, its slow resync, and the function that brings the actual state to the wanted one. */
export interface ControllerSpec {
  /** What the stack dump calls it: `inventory of lab`. */
  readonly name: string;
  /** Its source file, below the room's folder. */
  readonly site: string;
  /** It looks at least this often, milliseconds with jitter, whether or not it is woken: a lost event delays, and never loses. */
  readonly resyncMs?: number;
  /**
   * Compares what should be with what is, and acts on the difference. It may be cut off anywhere, and is entered again. Resolves with the
   * milliseconds after which to look again at the latest; undefined: with the next wake or resync.
   */
  reconcile(signal: AbortSignal, task: LiveTask): Promise<number | undefined>;
  /** Says that a look failed, `attempt` times in a row before this one. Returns when to look again, as `reconcile` does. */
  failed?(error: unknown, attempt: number): number | undefined;
}

/**
 * Runs `reconcile` when it is woken, at each slow resync, and again with back-off after a failure; never two at once. Level-triggered: a
 * run does not know what woke it, and any number of wakes before a run cause one run. The stack dump lists each open controller.
 */
export class Controller {
  readonly #handles: ControllerHandles;
  readonly #spec: ControllerSpec;
  readonly #stop = new AbortController();
  readonly #task: LiveTask;
  /** Called when it rests with nothing to look at by time. */
  readonly #onRest: () => void;
  #timer: Timer | undefined;
  /** When it looks next, monotonic milliseconds. */
  #next = Number.POSITIVE_INFINITY;
  /** From the decision to look until the look has ended. Wakes in this time only move `#next`. */
  #busy = false;
  #running: Promise<void> | undefined;
  /** Failures in a row. */
  #failures = 0;

  constructor(handles: ControllerHandles, spec: ControllerSpec, onRest: () => void = () => {}) {
    this.#handles = handles;
    this.#spec = spec;
    this.#onRest = onRest;
    this.#task = handles.live.begin({ kind: "controller", name: spec.name, site: spec.site });
    this.#task.rests();
  }

  /** Begins its resyncs. The first comes after a whole pause, so a controller that should look at once is woken, too. */
  start(): void {
    this.wake(this.#resync());
  }

  /** It looks within `delayMs` from now: at once without it. While a look is under way, it looks once more after that. */
  wake(delayMs = 0): void {
    const at = this.#handles.clock.monotonic() + Math.min(delayMs, LONGEST_MS);
    if (this.#stop.signal.aborted || at >= this.#next) return;
    this.#next = at;
    if (!this.#busy) this.#arm();
  }

  /** Looks at once, or again after the look that is under way, and resolves when it has, well or not. */
  async look(): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const again = this.#busy;
    this.wake();
    // It was due already.
    if (!this.#busy) this.#arm();
    await this.#running;
    // The look that was under way has begun the next one before it resolved.
    if (again) await this.#running;
  }

  /** Ends it: a look under way is aborted, and waited for. */
  async close(): Promise<void> {
    this.#stop.abort(new Error(`${this.#spec.name}: the controller is closed`));
    this.#timer?.cancel();
    this.#handles.live.end(this.#task);
    await this.#running;
  }

  /** Milliseconds until the next resync; Infinity: it has none. */
  #resync(): number {
    const { resyncMs } = this.#spec;
    return resyncMs === undefined ? Number.POSITIVE_INFINITY : jitter(this.#handles.random, resyncMs);
  }

  #arm(): void {
    this.#timer?.cancel();
    const ms = this.#next - this.#handles.clock.monotonic();
    if (ms <= 0) this.#look();
    else if (ms !== Number.POSITIVE_INFINITY) {
      this.#task.rests(ms);
      this.#timer = this.#handles.clock.setTimer(ms, () => this.#look(), { background: true });
    } else {
      this.#task.rests();
      this.#onRest();
    }
  }

  /** In a microtask: events that come together make one look. */
  #look(): void {
    this.#busy = true;
    this.#running = Promise.resolve().then(async () => {
      this.#next = Number.POSITIVE_INFINITY;
      this.#task.at("reconciles");
      const again = await this.#reconcile();
      this.#busy = false;
      if (this.#stop.signal.aborted) return;
      const now = this.#handles.clock.monotonic();
      this.#next = Math.min(
        this.#next,
        now + Math.min(Math.max(1, again ?? Number.POSITIVE_INFINITY), this.#resync()),
      );
      this.#arm();
    });
  }

  async #reconcile(): Promise<number | undefined> {
    if (this.#stop.signal.aborted) return undefined;
    try {
      const again = await this.#spec.reconcile(this.#stop.signal, this.#task);
      this.#failures = 0;
      return again;
    } catch (error) {
      if (this.#stop.signal.aborted) return undefined;
      const attempt = this.#failures++;
      if (this.#spec.failed !== undefined) return this.#spec.failed(error, attempt);
      const { log, random } = this.#handles;
      log.warn(
        { controller: this.#spec.name, attempt, error: messageOf(error) },
        "a controller failed; it will look again",
      );
      return this.#spec.resyncMs === undefined
        ? backoff(random, attempt, RETRY_MS, RETRY_MOST_MS)
        : undefined;
    }
  }
}

/** Many controllers of one kind, one for each key: each is made when it is first woken, and goes when it rests. */
export class KeyedController {
  readonly #handles: ControllerHandles;
  readonly #specOf: (key: string) => ControllerSpec;
  readonly #open = new Map<string, Controller>();
  #closed = false;

  constructor(handles: ControllerHandles, specOf: (key: string) => ControllerSpec) {
    this.#handles = handles;
    this.#specOf = specOf;
  }

  /** Makes the controller of the key if there is none, and wakes it. */
  wake(key: string): void {
    this.#of(key)?.wake();
  }

  /** As `look` of a controller. */
  async look(key: string): Promise<void> {
    await this.#of(key)?.look();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#open.values()].map((controller) => controller.close()));
  }

  #of(key: string): Controller | undefined {
    const open = this.#open.get(key);
    if (this.#closed || open !== undefined) return open;
    const controller = new Controller(this.#handles, this.#specOf(key), () => this.#end(key));
    this.#open.set(key, controller);
    return controller;
  }

  /** It rests without a time to look again, so it is not needed until it is woken. */
  #end(key: string): void {
    const controller = this.#open.get(key);
    this.#open.delete(key);
    void controller?.close();
  }
}
