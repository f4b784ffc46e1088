import type { Lease, LeaseWish, NodeAccess } from "@nodeyard/client";
import { backoff, defined, hexId, messageOf, type Timer } from "@nodeyard/runtime";
import type { ConnectorParts } from "./kind.ts";
import type { Program } from "./on-node.ts";

/** A program on a node that takes one job from the other system and ends. */
export interface Runner {
  /** Also its name in the other system, and the key of its lease. */
  readonly name: string;
  /** `waiting` for its node, `starting` or without a job yet, `busy` with a job. */
  state: "waiting" | "starting" | "busy";
  /** Monotonic time at which it was asked for. */
  readonly since: number;
  /** Ends it. */
  readonly stop: AbortController;
  lease?: Lease;
}

/** What a pool of runners asks the other system. Its calls have limits of time of their own. */
export interface RunnerSource {
  /** Registers a runner, again where one of this name is left from a start that failed, and says what starts it on its node. */
  begin(runner: string): Promise<Program>;
  /** Takes a runner from the system unless it has a job; one that is not there is `removed`. */
  remove(runner: string): Promise<"removed" | "busy">;
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
const SURPLUS = new Error("no job waits for it any more");
const IDLE = new Error("it took no job in time");
const CLOSED = new Error("the connector is stopped");

const [FIRST_PAUSE_MS, MAX_PAUSE_MS] = [1_000, 300_000];
const HEARTBEAT_SECONDS = 60;

/**
 * Keeps as many runners as are wanted: each has a lease of its own, and its name is the key of that, so that the next process goes on with it
 * and no runner has two nodes. A runner with a job is never ended by the pool.
 */
export class RunnerPool {
  readonly #source: RunnerSource;
  readonly #wish: RunnerWish;
  readonly #parts: ConnectorParts;
  readonly #runners = new Map<string, Runner>();
  readonly #work = new Set<Promise<void>>();
  #wanted = 0;
  /** Runners that failed one after the other. */
  #failures = 0;
  #pause: Timer | undefined;
  #isClosed = false;

  constructor(source: RunnerSource, wish: RunnerWish, parts: ConnectorParts) {
    this.#source = source;
    this.#wish = wish;
    this.#parts = parts;
  }

  /** Those that are not over, by their names. */
  get runners(): ReadonlyMap<string, Readonly<Runner>> {
    return this.#runners;
  }

  /** Goes on with the runners of an earlier process, by their leases. Call it before `want`. */
  async adopt(): Promise<void> {
    const { pool } = this.#parts;
    for await (const { data, state } of pool.list("list_leases", { "job.system": this.#wish.system })) {
      const name = state === "released" ? undefined : this.#nameIn(data);
      if (name !== undefined && !this.#runners.has(name)) this.#add(name);
    }
  }

  /** Sets how many runners there should be: those that jobs wait for, and those that have one. */
  want(count: number): void {
    this.#wanted = count;
    this.#reconcile();
  }

  /** Notes the job of a runner, which people then find by the job. Repetitions cost nothing. */
  busy(
    name: string,
    job: { readonly id: string; readonly name: string | null; readonly url: string | null },
  ): void {
    const runner = this.#runners.get(name);
    if (runner === undefined || (runner.state === "busy" && runner.lease?.row.job?.id === job.id)) return;
    runner.state = "busy";
    this.#parts.log.info({ runner: name, lease: runner.lease?.id, job: job.id }, "a runner has a job");
    runner.lease?.describe({ job: { system: this.#wish.system, ...job } }).catch((error: unknown) => {
      this.#parts.log.warn(
        { runner: name, job: job.id, error: messageOf(error) },
        "cannot note the job in the lease",
      );
    });
  }

  /** Leaves runners and their leases to the next process; those that have no node yet are taken back. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#pause?.cancel();
    for (const { stop } of this.#runners.values()) stop.abort(CLOSED);
    await Promise.allSettled(this.#work);
  }

  #reconcile(): void {
    if (this.#isClosed || this.#pause !== undefined) return;
    const { name, random } = this.#parts;
    for (let n = this.#runners.size; n < this.#wanted; n++)
      this.#add(`${name}-${hexId(random).slice(0, 12)}`);
    // The youngest first: the oldest is next to have its node, or to take a job.
    const surplus = [...this.#runners.values()].reverse().filter(({ stop }) => !stop.signal.aborted);
    let left = surplus.length - this.#wanted;
    for (const state of ["waiting", "starting"] as const)
      for (const runner of surplus)
        if (left > 0 && runner.state === state) {
          left--;
          this.#track(this.#giveUp(runner, SURPLUS));
        }
  }

  #add(name: string): void {
    const since = this.#parts.clock.monotonic();
    const runner: Runner = { name, state: "waiting", since, stop: new AbortController() };
    this.#runners.set(name, runner);
    this.#track(this.#live(runner));
  }

  #track(work: Promise<void>): void {
    this.#work.add(work);
    void work.finally(() => this.#work.delete(work));
  }

  /** Ends a runner unless it has a job, of which only the system itself knows for certain. */
  async #giveUp(runner: Runner, why: Error): Promise<void> {
    try {
      if (runner.state !== "waiting" && (await this.#source.remove(runner.name)) === "busy") {
        runner.state = "busy";
        return;
      }
      runner.stop.abort(why);
    } catch (error) {
      this.#parts.log.warn(
        { runner: runner.name, error: messageOf(error) },
        "cannot take back a runner; will retry",
      );
    }
  }

  /** From the request of its node to the return of it. Never rejects. */
  async #live(runner: Runner): Promise<void> {
    const { pool, log, counters, name: connector } = this.#parts;
    let node: NodeAccess | undefined;
    let failure: unknown;
    try {
      const wish = {
        ...this.#wish.lease,
        heartbeat_seconds: HEARTBEAT_SECONDS,
        job: { system: this.#wish.system, id: runner.name },
        data: JSON.stringify({ connector, key: this.#wish.key, runner: runner.name }),
      };
      const lease = await pool.lease(wish, { key: runner.name, signal: runner.stop.signal });
      runner.lease = lease;
      [node] = await lease.nodes();
      if (node === undefined) throw new Error(`lease ${lease.id} has no node any more`);
      if (runner.state === "waiting") runner.state = "starting";
      log.info({ runner: runner.name, lease: lease.id, node: node.id }, "a runner has its node");
      await this.#serve(runner, lease, node);
    } catch (error) {
      failure = error;
    }
    // The successor goes on with it. Without a node there is nothing to go on with, and the lease has been released.
    if (this.#isClosed) return;
    await this.#end(runner, node, failure);
    this.#runners.delete(runner.name);
    const isOurs = failure === undefined || failure === SURPLUS;
    counters.add("connect.runners", 1, {
      connector,
      end: isOurs ? (failure === SURPLUS ? "surplus" : "done") : "failed",
    });
    this.#failures = isOurs ? 0 : this.#failures + 1;
    if (!isOurs) this.#retryLater(runner, failure);
    else this.#reconcile();
  }

  async #serve(runner: Runner, lease: Lease, node: NodeAccess): Promise<void> {
    const { shell, clock, log } = this.#parts;
    const idle = clock.setTimer(this.#wish.idleMs, () => {
      if (runner.state === "starting") this.#track(this.#giveUp(runner, IDLE));
    });
    try {
      const signal = AbortSignal.any([lease.signal, runner.stop.signal]);
      const { code, output } = await shell.run(
        node,
        runner.name,
        () => this.#source.begin(runner.name),
        signal,
      );
      const facts = {
        runner: runner.name,
        lease: lease.id,
        node: node.id,
        code,
        ...defined({ output: output || undefined }),
      };
      if (code === 0) log.info(facts, "a runner has ended");
      else log.warn(facts, "a runner has ended with an error");
      // The job may have failed, which its system shows; a runner that never had one is of no use to it.
      if (code !== 0 && runner.state === "starting")
        throw new Error(`the runner ended with ${code ?? "an unknown code"}`);
    } finally {
      idle.cancel();
    }
  }

  /** Each step on its own: what cannot be done is left to the system's own clean-up, and to the end of the lease. */
  async #end(runner: Runner, node: NodeAccess | undefined, failure: unknown): Promise<void> {
    const { shell, log, clock } = this.#parts;
    const attempt = (what: string, work: Promise<unknown>) =>
      work.catch((error: unknown) => log.warn({ runner: runner.name, error: messageOf(error) }, what));
    const { lease } = runner;
    if (node !== undefined) await attempt("cannot take back a runner", this.#source.remove(runner.name));
    // Not where the node may be another's already.
    if (node !== undefined && lease?.signal.aborted === false) {
      const limit = new AbortController();
      const timer = clock.setTimer(30_000, () => limit.abort(new Error("it took longer than 30 s")));
      await attempt("cannot clean a node", shell.stop(node, runner.name, limit.signal));
      timer.cancel();
    }
    const verdict = failure === undefined || failure === SURPLUS ? "ok" : "infra-failure";
    if (lease !== undefined)
      await attempt("cannot return a node", lease.end(verdict, failure ? messageOf(failure) : undefined));
  }

  /** What failed once may fail again at once: no new runner before the pause is over, whatever is wanted. */
  #retryLater(runner: Runner, failure: unknown): void {
    const { log, clock, random } = this.#parts;
    const pause = backoff(random, this.#failures - 1, FIRST_PAUSE_MS, MAX_PAUSE_MS);
    log.error(
      { runner: runner.name, lease: runner.lease?.id, error: messageOf(failure), retryMs: Math.round(pause) },
      "a runner has failed; another one follows while a job waits",
    );
    this.#pause ??= clock.setTimer(pause, () => {
      this.#pause = undefined;
      this.#reconcile();
    });
  }

  /** The runner of a lease of this pool; undefined: it is another's. */
  #nameIn(data: string | null): string | undefined {
    try {
      const { connector, key, runner } = JSON.parse(data ?? "null") as Record<string, unknown>;
      const isMine = connector === this.#parts.name && key === this.#wish.key;
      return isMine && typeof runner === "string" ? runner : undefined;
    } catch {
      return undefined;
    }
  }
}
