import {
  CallRefused,
  type Lease,
  LeaseFailed,
  LeaseLost,
  type LeaseRow,
  type LeaseWish,
  type NodeAccess,
} from "@nodeyard/client";
import { backoff, defined, hexId, messageOf, settledWithin, sleep, type Timer } from "@nodeyard/runtime";
import type { ConnectorParts } from "./kind.ts";
import type { Program } from "./on-node.ts";

/** A job as its system names it. */
export interface RunnerJob {
  readonly id: string;
  readonly name: string | null;
  readonly url: string | null;
}

/** A program on a node that takes one job from the other system and ends. */
export interface Runner {
  /** Also its name in the other system, and the key of its lease. */
  readonly name: string;
  /** `waiting` for its node, `starting` or without a job yet, `busy` with a job, `done` with it, `ending`: its node is being returned. */
  state: "waiting" | "starting" | "busy" | "done" | "ending";
  /** Monotonic time at which it was asked for. */
  readonly since: number;
  /** Ends it. */
  readonly stop: AbortController;
  /** Of the process before, by whose lease it goes on. */
  readonly adopted: LeaseRow | undefined;
  lease?: Lease;
  /** The job that its lease names. */
  job?: RunnerJob;
  /** Its job ended well, as far as the system has told: its caches are kept. */
  isGood?: boolean;
}

/** What a pool of runners asks the other system. Its calls have limits of time of their own. */
export interface RunnerSource {
  /** Registers a runner, again where one of this name is left from a start that failed, and says what starts it on its node. */
  begin(runner: string): Promise<Program>;
  /** Takes a runner from the system unless it has a job; one that is not there is `removed`. */
  remove(runner: string): Promise<"removed" | "busy">;
  /** The job of a runner that has ended, for a job so short that `busy` was never called. Absent: the system reports every job. */
  jobOf?(runner: string): Promise<RunnerJob | undefined>;
  /** Whether the job of a runner that has ended did so well. Absent: `done` is told. */
  endedWell?(job: RunnerJob): Promise<boolean>;
}

/** What runners are leased with. */
export interface RunnerWish {
  readonly system: string;
  /** Of this pool among those of the connector. */
  readonly key: string;
  readonly lease: Pick<LeaseWish, "labels" | "for_seconds" | "priority" | "tenant">;
  /** A runner that has had no job for so long after its start is given up, milliseconds. */
  readonly idleMs: number;
}

/** Why the pool itself ends a runner. */
export const SURPLUS = new Error("no job waits for it any more");
const IDLE = new Error("it took no job in time");
const CLOSED = new Error("the connector is stopped");

const [FIRST_PAUSE_MS, MAX_PAUSE_MS] = [1_000, 300_000];
const HEARTBEAT_SECONDS = 60;
/** For the clean-up of one node, milliseconds. */
const CLEAN_MS = 30_000;

/**
 * Keeps as many runners as are wanted: each has a lease of its own, by which the next process goes on with it. A runner with a job is never
 * ended by the pool, and one that has a node only after the system has said that it has none.
 */
export class RunnerPool {
  readonly #source: RunnerSource;
  readonly #wish: RunnerWish;
  readonly #parts: ConnectorParts;
  readonly #runners = new Map<string, Runner>();
  readonly #work = new Set<Promise<void>>();
  #wanted = 0;
  /** Pauses one after the other. */
  #failures = 0;
  #pause: Timer | undefined;
  #isClosed = false;

  constructor(source: RunnerSource, wish: RunnerWish, parts: ConnectorParts) {
    this.#source = source;
    this.#wish = wish;
    this.#parts = parts;
  }

  /** Those whose nodes have not been returned, by their names. */
  get runners(): ReadonlyMap<string, Readonly<Runner>> {
    return this.#runners;
  }

  /** Whether runners of that key with nodes of these labels are as those that this pool would start. */
  fits(key: string, labels: readonly string[]): boolean {
    return key === this.#wish.key && labels.join() === this.#wish.lease.labels.join();
  }

  /** Goes on with a runner of the process before, by its lease. */
  adopt(name: string, row: LeaseRow): void {
    if (!this.#runners.has(name) && !this.#isClosed) this.#add(name, row);
  }

  /** Sets how many runners there should be: those that jobs wait for, and those that have one. */
  want(count: number): void {
    this.#wanted = count;
    this.#reconcile();
  }

  /** Notes the job of a runner, which people then find by the job. Repetitions cost nothing. */
  busy(name: string, job: RunnerJob): void {
    const runner = this.#runners.get(name);
    if (runner === undefined || runner.state === "ending") return;
    runner.state = "busy";
    if (runner.job?.id === job.id) return;
    this.#failures = 0;
    // An adopted one has its lease a moment later, and the job is told again.
    if (runner.lease !== undefined) void this.#note(runner, runner.lease, job);
  }

  /** Never rejects. */
  async #note(runner: Runner, lease: Lease, job: RunnerJob): Promise<void> {
    runner.job = job;
    const { log } = this.#parts;
    const facts = { runner: runner.name, job: job.id };
    log.info({ ...facts, lease: lease.id }, "a runner has a job");
    await lease.describe({ job: { system: this.#wish.system, ...job } }).catch((error: unknown) => {
      log.warn({ ...facts, error: messageOf(error) }, "cannot note the job in the lease");
    });
  }

  /**
   * The job of a runner is over, and the runner ends by itself. Until then it counts no more: else the next one in line would be taken back for
   * it, and asked for again behind all others.
   */
  done(name: string, isGood = false): void {
    const runner = this.#runners.get(name);
    if (runner === undefined) return;
    // Also of one whose program was quicker to end than the news of its job: its lease may not be over yet.
    if (isGood) runner.isGood = true;
    if (runner.state !== "ending") runner.state = "done";
  }

  /** Leaves runners and their leases to the next process; new ones that have no node yet are taken back. */
  async close(graceMs: number): Promise<void> {
    this.#isClosed = true;
    this.#pause?.cancel();
    for (const { stop } of this.#runners.values()) stop.abort(CLOSED);
    await settledWithin(this.#parts.clock, graceMs, Promise.allSettled(this.#work));
  }

  #reconcile(): void {
    if (this.#isClosed) return;
    const { name, random } = this.#parts;
    const serving = [...this.#runners.values()].filter(
      ({ state, stop }) => state !== "done" && state !== "ending" && !stop.signal.aborted,
    );
    if (this.#pause === undefined)
      for (let n = serving.length; n < this.#wanted; n++) this.#add(`${name}-${hexId(random).slice(0, 12)}`);
    let left = serving.length - this.#wanted;
    // The youngest first: the oldest is next to have its node, or to take a job.
    for (const state of ["waiting", "starting"] as const)
      for (const runner of serving.toReversed())
        if (left > 0 && runner.state === state) {
          left--;
          this.#track(this.#giveUp(runner, SURPLUS).then(() => {}));
        }
  }

  #add(name: string, adopted?: LeaseRow): void {
    const state = adopted?.state === "granted" ? "starting" : "waiting";
    const runner: Runner = {
      name,
      state,
      since: this.#parts.clock.monotonic(),
      stop: new AbortController(),
      adopted,
    };
    this.#runners.set(name, runner);
    this.#track(this.#live(runner));
  }

  #track(work: Promise<void>): void {
    this.#work.add(work);
    void work.finally(() => this.#work.delete(work));
  }

  /** Ends a runner unless it has a job, of which only the system itself knows for certain. False: it could not be asked. */
  async #giveUp(runner: Runner, why: Error): Promise<boolean> {
    try {
      if (runner.state !== "waiting" && (await this.#source.remove(runner.name)) === "busy") {
        if (runner.state === "starting") runner.state = "busy";
        return true;
      }
      runner.stop.abort(why);
      return true;
    } catch (error) {
      this.#parts.log.warn(
        { runner: runner.name, error: messageOf(error) },
        "cannot take back a runner; will retry",
      );
      return false;
    }
  }

  /** From the request of its node to the return of it. Never rejects. */
  async #live(runner: Runner): Promise<void> {
    const { counters, log, name: connector } = this.#parts;
    let node: NodeAccess | undefined;
    let failure: unknown;
    try {
      const lease = await this.#leaseFor(runner);
      runner.lease = lease;
      const signal = AbortSignal.any([lease.signal, runner.stop.signal]);
      [node] = await this.#patiently(runner.name, () => lease.nodes(), signal);
      if (node === undefined) throw new Error(`lease ${lease.id} has no node any more`);
      if (runner.state === "waiting") runner.state = "starting";
      log.info({ runner: runner.name, lease: lease.id, node: node.id }, "a runner has its node");
      await this.#serve(runner, lease, node, signal);
    } catch (error) {
      failure = error;
    }
    // The successor goes on with it. A new one without a node has been released by the client.
    if (this.#isClosed) return;
    // Its job is over before the system has told: the next look would take back whatever came in its place.
    if (runner.state === "busy") this.#wanted = Math.max(0, this.#wanted - 1);
    runner.state = "ending";
    const isOurs = failure === undefined || failure === SURPLUS;
    const end = failure === SURPLUS ? "surplus" : "done";
    counters.add("connect.runners", 1, { connector, end: isOurs ? end : "failed" });
    if (isOurs) this.#reconcile();
    else this.#retryLater(runner, failure);
    await this.#end(runner, node, failure);
    this.#runners.delete(runner.name);
  }

  /** A lease of its own, or that of the process before, which an error does not end: its runner may have a job. */
  #leaseFor({ name, stop, adopted }: Runner): Promise<Lease> {
    const { pool, name: connector } = this.#parts;
    const { signal } = stop;
    if (adopted !== undefined)
      return this.#patiently(name, () => pool.resume(adopted.id, { signal }), signal);
    const wish = {
      ...this.#wish.lease,
      heartbeat_seconds: HEARTBEAT_SECONDS,
      job: { system: this.#wish.system, id: name },
      data: JSON.stringify({ connector, key: this.#wish.key, runner: name }),
    };
    return pool.lease(wish, { key: name, signal });
  }

  /** Repeats a call of the pool until it is answered, the lease has ended, or the runner is to end. */
  async #patiently<T>(runner: string, call: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const { clock, random, log } = this.#parts;
    for (let attempt = 0; ; attempt++) {
      try {
        return await call();
      } catch (error) {
        signal.throwIfAborted();
        // Any other refusal, such as of a rate or a token, may pass, and the runner may have a job.
        const isGone = error instanceof CallRefused && (error.status === 404 || error.status === 409);
        if (isGone || error instanceof LeaseLost || error instanceof LeaseFailed) throw error;
        log.warn(
          { runner, attempt: attempt + 1, error: messageOf(error) },
          "the pool does not answer; will retry",
        );
        await sleep(clock, backoff(random, attempt, FIRST_PAUSE_MS, HEARTBEAT_SECONDS * 1_000), signal);
      }
    }
  }

  async #serve(runner: Runner, lease: Lease, node: NodeAccess, signal: AbortSignal): Promise<void> {
    const { shell, clock, log } = this.#parts;
    let idle: Timer | undefined;
    const wait = () => {
      idle?.cancel();
      idle = clock.setTimer(this.#wish.idleMs, () => this.#track(look()));
    };
    const look = async () => {
      if (runner.state === "starting" && !(await this.#giveUp(runner, IDLE))) wait();
    };
    wait();
    // A node that was just leased has no program yet: the runner is registered while ssh connects.
    let begun = runner.adopted === undefined ? this.#source.begin(runner.name) : undefined;
    begun?.catch(() => {});
    let isTaken = begun === undefined;
    try {
      const program = async () => {
        if (isTaken || begun === undefined) begun = this.#source.begin(runner.name);
        isTaken = true;
        const made = await begun;
        // The time of a slow connection is not the runner's.
        wait();
        return made;
      };
      const { code, output } = await shell.run(node, runner.name, program, signal);
      const facts = {
        ...{ runner: runner.name, lease: lease.id, node: node.id, code },
        ...defined({ output: output || undefined }),
      };
      if (code === 0) log.info(facts, "a runner has ended");
      else log.warn(facts, "a runner has ended with an error");
      // The job may have failed, which its system shows; a runner that never had one is of no use to it.
      const isUseless = code !== 0 && runner.state === "starting";
      if (isUseless && !(await this.#hadJob(runner, lease).catch(() => false)))
        throw new Error(`the runner ended with ${code ?? "an unknown code"}`);
    } finally {
      idle?.cancel();
      // One that is registered after it was taken back would be left behind.
      await begun?.catch(() => {});
    }
  }

  /** Each step on its own: what cannot be done is left to the system's own clean-up, and to the end of the lease. */
  async #end(runner: Runner, node: NodeAccess | undefined, failure: unknown): Promise<void> {
    const { name, lease, adopted } = runner;
    const { shell, log, clock, pool } = this.#parts;
    const attempt = (what: string, work: Promise<unknown>) =>
      work.then(
        () => true,
        (error: unknown) => {
          log.warn({ runner: name, error: messageOf(error) }, what);
          return false;
        },
      );
    // An adopted one may have a runner, whose node was not read.
    if (node !== undefined || adopted !== undefined)
      await attempt("cannot take back a runner", this.#source.remove(name));
    let verdict: "ok" | "dirty" | "infra-failure" =
      failure === undefined || failure === SURPLUS ? "ok" : "infra-failure";
    // Not where the node may be another's already.
    if (node !== undefined && lease?.signal.aborted === false) {
      const limit = new AbortController();
      const timer = clock.setTimer(CLEAN_MS, () =>
        limit.abort(new Error(`it took longer than ${CLEAN_MS / 1_000} s`)),
      );
      const isClean = await attempt("cannot clean a node", shell.stop(node, name, limit.signal));
      timer.cancel();
      if (!isClean && verdict === "ok") verdict = "dirty";
    }
    // One that was given up may have had a job that was over before anybody saw it.
    if (verdict !== "infra-failure" && node !== undefined && lease !== undefined)
      await attempt("cannot see which job a runner had, and how it ended", this.#learn(runner, lease));
    const why = failure === undefined ? undefined : messageOf(failure);
    if (lease !== undefined) await attempt("cannot return a node", lease.end(verdict, why, runner.isGood));
    else if (adopted !== undefined)
      await attempt(
        "cannot return a node",
        pool.call("release_lease", { path: { id: adopted.id }, body: { verdict } }),
      );
  }

  /** Whether a runner that has ended had a job, which people find from now on. Rejects with the system's error. */
  async #hadJob(runner: Runner, lease: Lease): Promise<boolean> {
    const missed = runner.job === undefined && (await this.#source.jobOf?.(runner.name));
    if (missed) await this.#note(runner, lease, missed);
    return runner.job !== undefined;
  }

  /** Whether the job of a runner ended well: else its caches are not kept. */
  async #learn(runner: Runner, lease: Lease): Promise<void> {
    if (!(await this.#hadJob(runner, lease))) return;
    if ((await this.#source.endedWell?.(runner.job!)) === true) runner.isGood = true;
  }

  /** What failed once may fail again at once: no new runner before the pause is over, whatever is wanted. */
  #retryLater(runner: Runner, failure: unknown): void {
    const { log, clock, random } = this.#parts;
    const facts = { runner: runner.name, lease: runner.lease?.id, error: messageOf(failure) };
    log.error(facts, "a runner has failed; another one follows while a job waits");
    // Several that fail together are one failure.
    if (this.#pause !== undefined) return;
    const pause = backoff(random, this.#failures, FIRST_PAUSE_MS, MAX_PAUSE_MS);
    this.#failures++;
    this.#pause = clock.setTimer(pause, () => {
      this.#pause = undefined;
      this.#reconcile();
    });
  }
}
