import { type Clock, deadline, messageOf, type Random, type Span, type Timer } from "@nodeyard/runtime";
import type { KilledSliver } from "@nodeyard/sliver-protocol";
import type { Capacity } from "../core/capacity.ts";
import type { Observed, Task } from "../core/plan.ts";
import type { State } from "../core/record.ts";
import { isSpare } from "../core/spares.ts";
import { hasChanged, type Machine, type SyncResult, sync } from "../core/sync.ts";
import {
  look,
  mayEnd,
  monotonicAt,
  nextLook,
  type TrustedTime,
  trustedSeconds,
  trustFirst,
} from "../core/time.ts";
import { StepTimeoutError } from "../errors.ts";
import type { BackEnd } from "../isolation/contract.ts";
import { Executor, type Outcome } from "../isolation/executor.ts";
import type { Store } from "../store/store.ts";
import { type Change, Mutations } from "./mutations.ts";
import { LongOperations, Restarts, Retries, SpacedStarts } from "./pauses.ts";
import { spansOf } from "./traces.ts";

/** Log of the manager. A message is one line. */
export interface ManagerLog {
  info(message: string): void;
  error(message: string): void;
}

/** Options of a manager. */
export interface ManagerOptions {
  readonly node: string;
  readonly store: Pick<Store, "save">;
  /** The state that was loaded from the store. */
  readonly state: State;
  readonly backEnd: BackEnd;
  readonly machine: Machine;
  readonly capacity: Capacity;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: ManagerLog;
  /** Receives the spans of slivers that are made for a traced launch. Absent: nothing is traced. Must not throw. */
  readonly trace?: (span: Span) => void;
  /** Milliseconds between syncs when nothing happens. The heartbeat repairs whatever an event was missed for. */
  readonly heartbeat?: number;
  /** Milliseconds between the starts of slivers at the first sync; 0 means no pause. (PlanetLab's NodeManager: option `-s`, 3 s.) */
  readonly startSpacing?: number;
  /** Operations on files that are under way in this process. Absent: not counted. */
  readonly fileOperations?: () => number;
}

/** Milliseconds. */
const HEARTBEAT = 10_000;
const INSPECT_LIMIT = 30_000;
const CLOSE_LIMIT = 20_000;
/** After the last step for a sliver, before a spare is made: the processors belong first to the client that waited for the sliver. */
const SPARE_PAUSE = 1_000;

/** Slivers that a report remembers after their end. */
const MOST_KILLED = 64;

const CLOCK_JUMPED =
  "the clock jumped; the new time is trusted when it has lasted a minute, and no sliver ends by its age until ten minutes later";

/**
 * Holds the state of a node and brings the machine to it (reconciliation): after every change of the state, outcome of a task, end of a
 * sliver, and at every heartbeat.
 *
 * A sync looks at the machine, decides with `sync` (pure), stores what it decided and only then begins tasks. There is one sync at a
 * time; requests that come meanwhile lead to one more. Tasks run beside syncs, at most one for an incarnation. A failed look changes
 * nothing: the next heartbeat tries again.
 */
export class Manager {
  readonly options: ManagerOptions;
  /** Tasks that failed, with the time at which each may be tried again. */
  readonly failures: Retries;
  /** Changes of the state one after the other, each stored before it is visible. */
  readonly #mutations: Mutations;
  readonly #executor: Executor;
  /** By incarnation: limits that its last configure could not set. */
  readonly #unenforced = new Map<number, readonly string[]>();
  /** Incarnations for which a task began or ended since the current look at the machine, or since the last one when none is under way. */
  readonly #touched = new Set<number>();
  /** The same since the look that the last result is based on: the result may be out of date for these. */
  readonly #unsure = new Set<number>();
  readonly #starts: SpacedStarts;
  readonly #restarts: Restarts;
  readonly #long = new LongOperations();
  /** By incarnation, oldest first. */
  readonly #killed = new Map<number, KilledSliver>();
  /** Called after each sync. */
  readonly #listeners = new Set<() => void>();
  /** The last withheld document, until a document is applied. `since`: monotonic milliseconds. */
  withheld:
    | { readonly message: string; readonly ended: readonly string[]; readonly since: number }
    | undefined;
  #sequence = 0;
  #trouble: { readonly message: string; readonly attempts: number } | undefined;
  /** Revision of the state that the last result is based on. */
  #synced = -1;
  #time: TrustedTime;
  /** What the last sync found on the machine. */
  #observed: readonly Observed[] = [];
  #result: SyncResult | undefined;
  /** The loop of syncs; undefined while none is requested. */
  #running: Promise<void> | undefined;
  /** One more sync is wanted after the running one. */
  #again = false;
  /** Monotonic milliseconds at which the next sync is due, according to the last sync. */
  #wake = Number.POSITIVE_INFINITY;
  /** Monotonic milliseconds before which no spare is made. */
  #spareDue = 0;
  #timer: Timer | undefined;
  #closed = false;

  constructor(options: ManagerOptions) {
    const { clock } = options;
    this.options = options;
    this.failures = new Retries(clock, options.random);
    this.#mutations = new Mutations(options.state, (state) => options.store.save(state));
    this.#starts = new SpacedStarts(options.startSpacing ?? 0);
    this.#restarts = new Restarts(clock, options.random);
    this.#executor = new Executor(options.backEnd, clock);
    this.#time = trustFirst(clock.now(), clock.monotonic(), options.state);
    if (this.clockSuspect) options.log.error(CLOCK_JUMPED);
  }

  get state(): State {
    return this.#mutations.state;
  }

  get observed(): readonly Observed[] {
    return this.#observed;
  }

  /** Result of the last sync. */
  get result(): SyncResult | undefined {
    return this.#result;
  }

  /** Tasks in progress, by incarnation. */
  get busy(): Executor["busy"] {
    return this.#executor.busy;
  }

  /** The wall clock jumped and the new time is not trusted yet: until then nothing ends by its age. */
  get clockSuspect(): boolean {
    return this.#time.suspect !== undefined;
  }

  /** Seconds since the Unix epoch, by the trusted clock. */
  get now(): number {
    return trustedSeconds(this.#time, this.options.clock.monotonic());
  }

  /** For operators: what the last configure of this incarnation could not set. */
  unenforced(incarnation: number): readonly string[] {
    return this.#unenforced.get(incarnation) ?? [];
  }

  /**
   * Changes the state. The change is durable when the promise resolves; the machine follows later. `sliver`: the sliver that made this
   * call; each may have one call waiting. Rejects with what `decide` throws, BusyError, StoreWriteError.
   */
  async change<T>(decide: (state: State) => Change<T>, sliver?: string): Promise<T> {
    const before = this.state;
    const result = await this.#mutations.change(decide, sliver);
    if (this.state !== before) this.requestSync();
    return result;
  }

  /** Calls `listener` after each sync until the returned function is called. The listener must not throw. */
  onSync(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Requests a sync soon. Requests before it begins are served by the same sync. */
  requestSync(): void {
    if (this.#closed) return;
    this.#again = true;
    this.#running ??= this.#loop().finally(() => {
      this.#running = undefined;
      this.#arm();
    });
  }

  /** Whether the machine is as the records of that revision, or of a later one, want this incarnation. */
  isDone(incarnation: number, revision: number): boolean {
    const todo = this.#result?.tasks.some((task) => task.incarnation === incarnation) ?? true;
    const sure = !this.#unsure.has(incarnation) && !this.#executor.busy.has(incarnation);
    return this.#synced >= revision && !todo && sure;
  }

  /** Why the machine cannot be inspected. Until it can, no sliver is changed: decisions without facts could destroy data. */
  get trouble(): { readonly message: string; readonly attempts: number } | undefined {
    return this.#trouble;
  }

  /** The last slivers that ended after the kernel had killed one of their processes for lack of memory. */
  get killed(): readonly KilledSliver[] {
    return [...this.#killed.values()];
  }

  /** Operations on files that have waited for half a minute. Each holds one of this process's few threads for files. */
  get waitingThreads(): number {
    return this.#long.count(this.options.clock.monotonic());
  }

  /** Grows with each inspection of the machine, also with a failed one. */
  get sequence(): number {
    return this.#sequence;
  }

  /** Grows with each change of the state. */
  get revision(): number {
    return this.#mutations.revision;
  }

  /** Begins no more tasks, aborts those that run, and waits up to CLOSE_LIMIT for the back end to stop. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    const late = new Promise<void>((resolve) => {
      this.options.clock.setTimer(CLOSE_LIMIT, resolve, { background: true });
    });
    await Promise.race([Promise.all([this.#executor.close(), this.#running]), late]);
    await this.#mutations.settled();
  }

  /** Runs syncs until none is wanted. Never rejects. */
  async #loop(): Promise<void> {
    while (this.#again && !this.#closed) {
      this.#again = false;
      try {
        await this.#syncOnce();
      } catch (error) {
        this.#trouble = { message: messageOf(error), attempts: (this.#trouble?.attempts ?? 0) + 1 };
        this.#sequence += 1;
        // The next heartbeat tries again. Times from an earlier sync are dropped: they may be due now and would cause a loop without
        // pauses.
        this.#wake = Number.POSITIVE_INFINITY;
        this.options.log.error(`sync failed: ${messageOf(error)}`);
        for (const check of [...this.#listeners]) check();
      }
    }
  }

  /** Rejects when the machine cannot be inspected or the state not be stored; then nothing was begun. */
  async #syncOnce(): Promise<void> {
    const { clock, machine } = this.options;
    this.#long.see(this.options.fileOperations?.() ?? 0, clock.monotonic());
    this.#touched.clear();
    for (const incarnation of this.#executor.busy.keys()) this.#touched.add(incarnation);
    const observed = await this.#inspect();
    this.#look();
    let revision = 0;
    const result = await this.#mutations.change((state) => {
      const ages = mayEnd(this.#time, clock.monotonic());
      const planned = sync(state, observed, machine, this.now, ages, {
        isBusy: (incarnation) => this.#touched.has(incarnation),
        hasFailed: (incarnation) => this.failures.of(incarnation) !== undefined,
      });
      // A sync that changes nothing writes nothing.
      const changed = hasChanged(state, planned.state);
      // The sync has seen its own change, so the result is of that revision.
      revision = this.#mutations.revision + (changed ? 1 : 0);
      return { state: changed ? planned.state : state, result: planned };
    });
    if (this.#result !== undefined) this.#tellKills(observed);
    this.#keepKilled(result.state, observed);
    this.#observed = observed;
    this.#result = result;
    this.#synced = revision;
    this.#unsure.clear();
    for (const incarnation of this.#touched) this.#unsure.add(incarnation);
    this.#sequence += 1;
    this.#trouble = undefined;
    this.#prune(result, observed);
    this.#starts.see(result.tasks, clock.monotonic());
    this.#submit(result.tasks);
    // A state that lasts until second n is over at the next look after it.
    this.#wake = Math.min(
      this.#starts.next,
      this.#restarts.next(result.tasks.map(({ incarnation }) => incarnation)),
      result.tasks.some((task) => this.#isEarly(task)) ? this.#spareDue : Number.POSITIVE_INFINITY,
      nextLook(this.#time, clock.monotonic()),
      monotonicAt(this.#time, result.nextEnd) + 1,
    );
    for (const check of [...this.#listeners]) check();
  }

  /** Compares the two clocks, and says once when the wall clock jumped and when it is trusted again. */
  #look(): void {
    const { clock, log } = this.options;
    const before = this.clockSuspect;
    this.#time = look(this.#time, clock.now(), clock.monotonic());
    if (this.clockSuspect && !before) log.error(CLOCK_JUMPED);
    if (!this.clockSuspect && before)
      log.info(`the clock is trusted again: it is ${new Date(this.now * 1000).toISOString()}`);
  }

  /** Throws StepTimeoutError for a look that takes too long: a hung command must not stop all slivers for ever. */
  async #inspect(): Promise<readonly Observed[]> {
    const late = () =>
      new StepTimeoutError(`inspecting the machine took more than ${INSPECT_LIMIT / 1000} s`);
    using limit = deadline(this.options.clock, INSPECT_LIMIT, late);
    return await this.options.backEnd.inspect(limit.signal);
  }

  #tellKills(observed: readonly Observed[]): void {
    const before = new Map(this.#observed.map((one) => [one.incarnation, one.memoryKills ?? 0]));
    for (const { incarnation, name, memoryKills = 0 } of observed) {
      const more = memoryKills - (before.get(incarnation) ?? 0);
      if (more > 0)
        this.options.log.info(`the kernel killed ${more} processes of ${name}, whose memory was full`);
    }
  }

  /** Remembers slivers that are about to be ended. The next report tells their owner why the last job failed. */
  #keepKilled({ records }: State, observed: readonly Observed[]): void {
    const kept = new Set([...records.values()].map(({ local }) => local.incarnation));
    for (const { incarnation, name, generation, memoryKills = 0, applied } of observed) {
      if (kept.has(incarnation) || memoryKills === 0) continue;
      const memoryCap = applied?.effective.memoryCap ?? 0;
      this.#killed.set(incarnation, { name, generation, memoryKills, memoryCap });
    }
    for (const oldest of [...this.#killed.keys()].slice(0, -MOST_KILLED)) this.#killed.delete(oldest);
  }

  #submit(tasks: readonly Task[]): void {
    const submitted = new Set<number>();
    let open = tasks.filter((task) => !this.#rests(task)).flatMap((task) => this.#calmed(task));
    // Tasks that give resources back go first. A task that waits for a resting one is submitted by a later sync.
    for (let before = -1; before !== open.length; ) {
      before = open.length;
      open = open.filter((task) => {
        if (!task.after.every((incarnation) => submitted.has(incarnation))) return true;
        const done = this.#executor.submit(task);
        if (done !== undefined) submitted.add(task.incarnation);
        void done?.then((outcome) => this.#ended(outcome));
        return false;
      });
    }
  }

  /** A spare whose making would take processors from slivers that were just asked for. Its removal is never early. */
  #isEarly({ name, config }: Task): boolean {
    return isSpare(name) && config !== undefined && this.options.clock.monotonic() < this.#spareDue;
  }

  /** Without its start, where that comes too soon after others; what it gives back to others does not wait. */
  #calmed(task: Task): Task[] {
    if (task.steps.includes("create") || !this.#restarts.rests(task.incarnation)) return [task];
    const steps = task.steps.filter((step) => step !== "start");
    return steps.length === 0 ? [] : [{ ...task, steps }];
  }

  /** Whether a planned task must wait: for a later look, for the pause after a failure, or for its turn at the first start. */
  #rests(task: Task): boolean {
    const { incarnation } = task;
    if (this.#isEarly(task)) return true;
    if (this.#touched.has(incarnation)) {
      // The observation is older than the task's last step, so inspect again.
      if (!this.#executor.busy.has(incarnation)) this.#again = true;
      return true;
    }
    return this.#starts.rests(incarnation) || this.failures.rests(incarnation);
  }

  /** Called once for each task, also for a failed one; the next sync judges what it left. */
  #ended(outcome: Outcome): void {
    const { task, error, failedStep, unenforced } = outcome;
    if (!isSpare(task.name)) this.#spareDue = this.options.clock.monotonic() + SPARE_PAUSE;
    this.#touched.add(task.incarnation);
    this.#unsure.add(task.incarnation);
    const { name: was } = this.#observed.find((one) => one.incarnation === task.incarnation) ?? task;
    const taken = isSpare(was) && !isSpare(task.name);
    this.#trace(outcome, taken);
    this.failures.note(outcome);
    this.#restarts.note(outcome);
    if (unenforced !== undefined) this.#unenforced.set(task.incarnation, unenforced);
    const { log } = this.options;
    if (error !== undefined) log.error(`${failedStep ?? "wait"} of ${task.name}: ${messageOf(error)}`);
    else if (taken) log.info(`${was} became ${task.name}`);
    // Steps that only change amounts come with every loan. They would fill the log.
    else if (task.steps.some((step) => step !== "configure"))
      log.info(`${task.steps.join(", ")} of ${task.name}`);
    this.requestSync();
  }

  #trace(outcome: Outcome, taken: boolean): void {
    const { trace, node } = this.options;
    if (trace === undefined) return;
    const { name, incarnation, steps } = outcome.task;
    const record = this.state.records.get(name);
    const own = record?.local.incarnation === incarnation ? record : undefined;
    const making = taken || steps.includes("create") || this.failures.of(incarnation) !== undefined;
    for (const span of spansOf(node, own, outcome, making)) trace(span);
  }

  /** Forgets incarnations that are neither on the machine nor in the state. Their numbers never come back. */
  #prune(result: SyncResult, observed: readonly Observed[]): void {
    const alive = new Set(observed.map(({ incarnation }) => incarnation));
    const { records, spares } = result.state;
    for (const { local } of [...records.values(), ...spares]) alive.add(local.incarnation);
    this.failures.prune(alive);
    this.#restarts.prune(alive);
    for (const incarnation of this.#unenforced.keys())
      if (!alive.has(incarnation)) this.#unenforced.delete(incarnation);
  }

  /** Sets the timer for the next sync: the heartbeat, or what comes before it. */
  #arm(): void {
    this.#timer?.cancel();
    if (this.#closed) return;
    const { clock, heartbeat = HEARTBEAT } = this.options;
    const due = Math.max(1, this.#wake - clock.monotonic());
    const wait = Math.min(heartbeat, this.failures.next ?? HEARTBEAT, due);
    this.#timer = clock.setTimer(wait, () => this.requestSync(), { background: true });
  }
}
