import { Answerer, type ProviderUse } from "@nodeyard/asking";
import { Controller, Membership, notReady, openInstallation, StandingReporter } from "@nodeyard/coordination";
import { failureKey } from "@nodeyard/model";
import type { ProviderMachines } from "@nodeyard/operations";
import { deadline, NodeyardError } from "@nodeyard/runtime";
import type { TenantUse, Verdict } from "@nodeyard/scheduler";
import type { LiveWork, PastEvent } from "@nodeyard/telemetry";
import { retryInterrupted } from "@nodeyard/tree";
import type { View } from "@nodeyard/view";
import { answer, type Sources } from "./answer.ts";
import { sweepSpending } from "./limits/spending.ts";
import type { Loop } from "./loop.ts";
import { lookAtConsole } from "./nodes/console.ts";
import { sweepRemarks } from "./nodes/remarks.ts";
import type { LauncherConfig, LauncherOptions } from "./options.ts";
import { assemble, type Parts } from "./parts.ts";
import type { Stranded } from "./providers/former.ts";
import { providerUses } from "./providers/use.ts";
import { aborted } from "./tasks.ts";
import { removeGhosts, removeLockParents } from "./tree-leftovers.ts";

/** Slow resync of everything that events drive, milliseconds. */
const SWEEP_MS = 60_000;

const CLOCK_JUMPED =
  "this machine's clock and the tree's differ more than before: nothing is deleted because of its age until three looks agree";

/** Answers node requests: view -> scheduler -> tasks -> tree, with everything that keeps that true over time. */
export class Launcher {
  readonly #options: LauncherOptions;
  readonly #parts: Parts;
  readonly #membership: Membership;
  /** What looks by time alone. */
  readonly #sweeps: readonly Controller[];
  readonly #answerer: Answerer;
  readonly #reporter: StandingReporter;
  #config: LauncherConfig;
  /** What the scheduler was told last by the event `complete`; it plans nothing while this is false. */
  #complete = false;
  #closed = false;

  /**
   * Connects the parts and starts to serve. Resolves when each provider has been tried once and the pools of those that opened are
   * registered. An abort of `stopping` ends the wait for providers; `close` ends what was started with them. Rejects when the tree has
   * a newer layout.
   */
  static async start(options: LauncherOptions, stopping?: AbortSignal): Promise<Launcher> {
    const installation = await retryInterrupted(options, () =>
      openInstallation(options.tree, options.random),
    );
    const launcher = new Launcher(options, installation);
    await launcher.#begin(stopping);
    return launcher;
  }

  private constructor(options: LauncherOptions, installation: string) {
    this.#options = options;
    this.#config = options.config;
    this.#parts = assemble(
      options,
      installation,
      () => this.#config,
      () => this.#reporter.wake(),
    );
    this.#membership = new Membership(
      this.#parts.handles,
      { kind: "launcher", ...options.identity },
      this.#parts.registration,
      {
        lost: () => this.#sessionLost(),
        renewed: () => {
          this.#tellComplete();
          this.#reporter.wake();
          this.#parts.loop.push({ type: "sweep" });
        },
      },
    );
    this.#sweeps = this.#makeSweeps();
    const { tree, clock, log, identity } = options;
    const member = { name: () => this.#membership.name, hostname: identity.hostname };
    this.#reporter = new StandingReporter(this.#parts.handles, member, () => [
      ...this.#parts.serving.facts(this.#config),
      ...this.#parts.sliverMachines.facts,
      ...notReady(
        "launcher",
        identity.hostname,
        this.stuck() ?? (this.clockTrusted ? undefined : CLOCK_JUMPED),
      ),
    ]);
    this.#answerer = new Answerer({
      tree,
      clock,
      log,
      now: () => this.#parts.ages.now(),
      member: () => this.#membership.name,
      hostname: identity.hostname,
      version: identity.version,
      answer: (about) => answer(this.#sources(), about),
    });
    this.view.follow((event, isNew) => {
      if (!isNew) return;
      if (event.type === "complete") this.#tellComplete();
      if (event.type === "image" || (event.type === "own" && failureKey(event.path) !== undefined))
        this.#reporter.wake();
      this.#answerer.onEvent(event);
    });
  }

  get view(): View {
    return this.#parts.view;
  }

  /** Whether requests are served now: the picture of the tree is whole, and others see the pools. */
  get serving(): boolean {
    return this.#complete && !this.#closed;
  }

  /** Whether something may be deleted because of its age (rule 8). */
  get clockTrusted(): boolean {
    return this.#parts.ages.trusted;
  }

  /** Every configured provider: whether it is served as it is configured, how full it is, and how its API fares. */
  providers(): readonly ProviderUse[] {
    const { serving, loop, errors } = this.#parts;
    return providerUses(this.#config, serving, loop, errors);
  }

  /** What tenants have, wait for and have spent, and their clients unless `clients` is false. */
  tenants({ clients = true }: { readonly clients?: boolean } = {}): readonly TenantUse[] {
    return this.#parts.loop.tenants(clients);
  }

  /** Nodes that no request gets, since their providers look elsewhere or are served no more. */
  stranded(): readonly Stranded[] {
    return this.#parts.serving.stranded();
  }

  /** Machines of which nodes are slivers, as their managers say now; none when that takes longer than `withinMs`. Never rejects. */
  sliverMachines(withinMs?: number): Promise<readonly ProviderMachines[]> {
    const look = this.#parts.sliverMachines;
    return withinMs === undefined ? look.list() : look.listWithin(withinMs);
  }

  /** Why a request is not served now; undefined when it has ended or is not known. */
  verdict(request: string): Verdict | undefined {
    return this.#parts.loop.verdict(request);
  }

  /** The controller that is stuck, as `Live.stuck` names it; undefined when all of them make progress. */
  stuck(): string | undefined {
    return this.#parts.handles.live.stuck();
  }

  /** Tasks in progress and the state of the scheduler, for people and for checks. */
  inspect(): {
    readonly tasks: readonly string[];
    readonly complete: boolean;
    readonly live: readonly LiveWork[];
  } & ReturnType<Loop["inspect"]> {
    const { tasks, loop } = this.#parts;
    const live = this.#parts.handles.live.list();
    return { tasks: tasks.list(), complete: this.view.complete, live, ...loop.inspect() };
  }

  /** What a process before this one noted on this machine, for estimates: TIMING_EVENTS, oldest first. */
  recall(events: readonly PastEvent[]): void {
    const { clock } = this.#options;
    this.#parts.handles.timings.recall(events, clock.now());
  }

  /** Takes a new configuration; providers that did not change are not reopened. */
  async reconfigure(config: LauncherConfig): Promise<void> {
    this.#config = config;
    this.#reporter.wake();
    const { ledgers, serving } = this.#parts;
    ledgers.setTenants(config.tenantLimits, config.budgets);
    // Labels and tenants' limits do not wait for a cloud that does not answer.
    serving.tellScheduler();
    await serving.apply(config.providers);
  }

  /**
   * Stops: pools leave the registry, and work in progress may end within `graceMs`, milliseconds. Then it is abandoned as in a crash;
   * any launcher finds the records that it leaves.
   */
  async close(graceMs = 10_000): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const { loop, leases, minReady, serving, tasks } = this.#parts;
    this.#membership.stop();
    for (const sweep of this.#sweeps) void sweep.close();
    const reported = this.#reporter.close();
    loop.stop();
    leases.close();
    minReady.close();
    // Before the tasks end: requests go to other launchers from now on.
    await serving.unregister().catch(() => {});
    const late = () => new NodeyardError("launcher.stopped", "the launcher stopped before the work was done");
    const grace = deadline(this.#options.clock, graceMs, late);
    // The loop still answers launches that wait for permission.
    await tasks.drain(grace.signal);
    grace.cancel();
    loop.close();
    await serving.close();
    await reported;
    await this.#membership.leave();
    await this.view.close();
  }

  async #begin(stopping: AbortSignal | undefined): Promise<void> {
    const { ages, leases, serving, loop } = this.#parts;
    await this.#membership.prepare();
    await this.view.start();
    this.#options.onView?.(this.view);
    // Before any pool registers: other launchers take a pool whose session has no member for a pool of a Python launcher.
    await this.#membership.begin();
    // The announcement was a write, whose reply has told the tree's time.
    ages.start();
    this.#tellComplete();
    // Leases and sweeps do not wait for a cloud that does not answer.
    leases.sweep();
    for (const sweep of this.#sweeps) sweep.start();
    this.#reporter.start();
    const tried = serving.apply(this.#config.providers);
    await (stopping === undefined ? tried : Promise.race([tried, aborted(stopping)]));
    void this.#lookAtMachines();
    loop.push({ type: "sweep" });
  }

  /** The scheduler acts only on a whole picture, and only while others can see which pools it acts for. */
  #tellComplete(): void {
    const complete = this.view.complete && this.#membership.registered;
    if (complete === this.#complete) return;
    this.#complete = complete;
    this.#parts.loop.push({ type: "complete", complete });
  }

  /** The tree deleted our locks, components and min-ready requests with the session, so nothing is released by hand. */
  #sessionLost(): void {
    const { epoch } = this.#options.tree.session();
    this.#options.log.error({ epoch }, "lost the session with the tree: all its work is aborted");
    this.#parts.tasks.abandon();
    this.#parts.minReady.forget();
    this.#tellComplete();
    this.#parts.loop.push({ type: "session-lost" });
  }

  #sources(): Sources {
    const { loop, serving, view, ages, handles, sliverMachines } = this.#parts;
    return {
      view,
      timings: handles.timings,
      stepsUnderWay: handles.stepsUnderWay,
      maxHoldAgeMs: (provider) =>
        this.#config.providers.some(({ name }) => name === provider)
          ? this.#config.maxHoldAgeMs
          : Number.POSITIVE_INFINITY,
      now: () => ages.now(),
      verdict: (request) => loop.verdict(request),
      outlooks: (request, durations) => loop.outlooks(request, durations),
      outlooksOfLabel: (label, durations) => loop.outlooksOfLabel(label, durations),
      closed: () => serving.closed(),
      providers: () => this.providers(),
      tenants: () => this.tenants(),
      price: (pool, label) => serving.price(pool, label),
      place: (provider) => serving.providers.get(provider)?.provider.place?.(),
      remarks: (provider, node) => sliverMachines.remarks(provider, node),
      console: (record) => lookAtConsole(handles, serving.providers, record),
      history: this.#options.history,
    };
  }

  #makeSweeps(): readonly Controller[] {
    const { handles, serving, ledgers, launches, deletions } = this.#parts;
    const sweep = (name: string, look: () => Promise<unknown>, withinMs?: number) =>
      new Controller(handles, {
        name,
        site: "launcher/launcher.ts",
        resyncMs: SWEEP_MS,
        reconcile: async (_, task) => {
          task.at("reconciles", withinMs);
          if (this.view.complete) await look();
          return undefined;
        },
      });
    return [
      // No deadline of its own: it calls only the tree, whose calls have deadlines. If it hangs nevertheless, /live reports it.
      sweep("resync", () => this.#resync(), SWEEP_MS),
      sweep("empty node paths", () => removeGhosts(handles)),
      sweep("lock parents", () => removeLockParents(handles)),
      sweep("ledgers", () => Promise.all([ledgers.audit(), sweepSpending(handles)])),
      sweep("failures", () => launches.records.sweep()),
      sweep("dead letters", () => deletions.sweep()),
      sweep("remarks", () => Promise.all([sweepRemarks(handles), this.#lookAtMachines()])),
      sweep("providers that are left", () => serving.sweep()),
    ];
  }

  /** Machines of slivers send no events of their own faults. */
  async #lookAtMachines(): Promise<void> {
    await this.#parts.sliverMachines.observe();
    this.#reporter.wake();
  }

  /** The slow resync of what events drive: the scheduler, leases and min-ready requests. */
  async #resync(): Promise<void> {
    const { ages, loop, leases, minReady } = this.#parts;
    if (!ages.trusted) {
      await this.#membership.announce();
      ages.sweep();
    }
    loop.push({ type: "sweep" });
    leases.sweep();
    minReady.sweep();
    this.#tellDemand();
  }

  /** Spares with a target follow the demand from minute to minute. */
  #tellDemand(): void {
    const { loop, serving, handles } = this.#parts;
    const { pools } = serving.locals();
    for (const { name, spares } of this.#config.labels.values()) {
      if (!spares?.target) continue;
      // The dearest place counts: a budget is not to be exceeded.
      const prices = pools.flatMap(
        ({ key, offerings }) =>
          offerings?.get(name)?.flatMap(({ price }) => price ?? []) ??
          serving.price(key, name)?.perHour ??
          [],
      );
      const launches = pools.flatMap(({ key }) => handles.timings.launchesOf(key, name));
      const asked = handles.timings.asksOf(name);
      const perHour = prices.length === 0 ? {} : { perHour: Math.max(...prices) };
      loop.push({ type: "demand", label: name, demand: { asked, launches, ...perHour } });
    }
  }
}
