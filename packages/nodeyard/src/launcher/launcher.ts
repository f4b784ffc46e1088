import type { Driver, Evidence, ProviderConfig, Resources, Scanner } from "@nodeyard/driver";
import { newComponent } from "@nodeyard/model";
import {
  type Clock,
  deadline,
  jitter,
  messageOf,
  NodeyardError,
  type Random,
  sleep,
  type Timer,
} from "@nodeyard/runtime";
import type { Session, Tree } from "@nodeyard/tree";
import { Answerer } from "../asking/index.ts";
import { announceMember, Fence, openInstallation, persevere, Registration } from "../coordination/index.ts";
import type { LabelPolicy, OfferingFact, Policy, Verdict } from "../scheduler/index.ts";
import type { Counters, History, Journal, Log, Subject } from "../telemetry/index.ts";
import { View, type ViewEvent } from "../view/index.ts";
import { AgeClock } from "./age-clock.ts";
import { Admission } from "./breakers/admission.ts";
import { Breakers } from "./breakers/breakers.ts";
import { LabelBudgets } from "./breakers/label-budgets.ts";
import { defaultRule } from "./breakers/rule.ts";
import { LeaseKeeper } from "./clients/leases.ts";
import { MinReadyOwner } from "./clients/min-ready-owner.ts";
import { Ledgers } from "./limits/ledger.ts";
import { Loop } from "./loop.ts";
import { Deletions } from "./nodes/deletions.ts";
import { removeGhosts } from "./nodes/ghosts.ts";
import type { StepUnderWay } from "./nodes/step-trace.ts";
import { type Identity, Serving } from "./providers/serving.ts";
import { LockParentSweep } from "./requests/lock-parents.ts";
import { Tasks } from "./tasks.ts";
import { testify, type Witness } from "./testify.ts";
import { Timings } from "./timing/index.ts";

const SWEEP_MS = 60_000;

/** The part of the configuration that the launcher works by. */
export interface LauncherConfig {
  readonly providers: readonly ProviderConfig[];
  readonly labels: ReadonlyMap<string, LabelPolicy>;
  readonly tenantLimits: ReadonlyMap<string, Resources>;
  readonly maxHoldAgeMs: number;
  /** Of one offering (place and type); absent: 60. */
  readonly failedLaunchesPerHour?: number;
}

/** The handles of one process. In a simulation a crash is when they never settle again. */
export interface LauncherOptions {
  readonly tree: Tree;
  readonly clock: Clock;
  readonly random: Random;
  readonly scan: Scanner;
  readonly log: Log;
  readonly journal: Journal;
  readonly counters: Counters;
  readonly identity: Identity;
  readonly driverOf: (name: string) => Promise<Driver>;
  readonly config: LauncherConfig;
  /** What outlives nodes of whose their resources were; absent: drivers remember as long as the process lives. */
  readonly evidence?: Evidence;
  /** What the journal has of a thing, for those who ask; absent: this process remembers nothing. */
  readonly history?: (subject: Subject) => Promise<History>;
  /** Requests between acceptance and the start of their last launch, at most. */
  readonly maxStarting?: number;
}

/** Answers node requests: view -> scheduler -> tasks -> tree, with everything that keeps that true over time. */
export class Launcher {
  readonly view: View;
  readonly #options: LauncherOptions;
  readonly #registration: Registration;
  readonly #loop: Loop;
  readonly #serving: Serving;
  readonly #tasks: Tasks;
  readonly #leases: LeaseKeeper;
  readonly #minReady: MinReadyOwner;
  readonly #lockParents: LockParentSweep;
  readonly #ledgers: Ledgers;
  readonly #admission: Admission;
  readonly #deletions: Deletions;
  readonly #ages: AgeClock;
  readonly #answerer: Answerer;
  readonly #stop = new AbortController();
  #config: LauncherConfig;
  #epoch: number;
  /** Whether our components stand in this session: no pool accepts anything before. */
  #registered = false;
  #complete = false;
  #sweepTimer: Timer | undefined;
  #unsubscribe: () => void = () => {};

  /** Connects the parts and starts to serve; resolves when every provider was tried and the pools are registered. */
  static async start(options: LauncherOptions): Promise<Launcher> {
    const installation = await persevere(options, () => openInstallation(options.tree, options.random));
    const launcher = new Launcher(options, installation);
    await launcher.#begin();
    return launcher;
  }

  private constructor(options: LauncherOptions, installation: string) {
    this.#options = options;
    this.#config = options.config;
    const { tree, clock, random, scan, log, journal, counters } = options;
    this.#epoch = tree.session().epoch;
    this.#ages = new AgeClock({ tree, clock });
    this.view = new View({ tree, clock, random, log, counters });
    this.#ledgers = new Ledgers({ tree, view: this.view, clock, random, log });
    this.#ledgers.setTenants(this.#config.tenantLimits);
    this.#registration = new Registration({ tree, clock, random, log }, options.identity.hostname);
    const offering = (key: string, after?: OfferingFact) => this.#loop.push({ type: "offering", key, after });
    const rule = () => ({
      ...defaultRule,
      failedPerHour: this.#config.failedLaunchesPerHour ?? defaultRule.failedPerHour,
    });
    const { view } = this;
    const ages = this.#ages;
    this.#admission = new Admission(
      new Breakers({ tree, view, random, log, journal, counters, ages }, offering, rule),
      new LabelBudgets({ view, clock, log, journal, ages }, offering, rule),
    );
    const fence = new Fence(tree, clock, random);
    const context = {
      tree,
      view: this.view,
      clock,
      random,
      scan,
      log,
      journal,
      counters,
      fence,
      ages: this.#ages,
      ledgers: this.#ledgers,
      admission: this.#admission,
      installation,
      ownMinReady: new Set<string>(),
      stepsUnderWay: new Map<string, StepUnderWay>(),
      timings: new Timings(),
      ...(options.evidence === undefined ? {} : { evidence: options.evidence }),
    };
    this.#serving = new Serving({
      context,
      registration: this.#registration,
      identity: options.identity,
      driverOf: options.driverOf,
      onChange: () => this.#loop.push({ type: "policy", policy: this.#policy() }),
      onQuotaRefused: (provider) => this.#loop.push({ type: "quota-refused", provider }),
    });
    this.#loop = new Loop(context, (action) => this.#tasks.perform(action));
    this.#deletions = new Deletions(this.#serving.context, (node) =>
      this.#loop.push({ type: "deleted", node }),
    );
    this.#tasks = new Tasks(
      this.#serving.context,
      (event) => this.#loop.push(event),
      this.#serving,
      this.#deletions,
    );
    this.#leases = new LeaseKeeper(this.#serving.context);
    this.#minReady = new MinReadyOwner(this.#serving.context);
    this.#lockParents = new LockParentSweep(this.#serving.context);
    const { identity } = options;
    this.#answerer = new Answerer({
      tree,
      clock,
      log,
      now: () => this.#ages.now(),
      member: () => this.#memberName(),
      hostname: identity.hostname,
      version: identity.version,
      testify: (about) => testify(this.#witness(), about),
    });
  }

  /** Why a request is not served now; undefined when it has ended or is not known. */
  verdict(request: string): Verdict | undefined {
    return this.#loop.verdict(request);
  }

  #witness(): Witness {
    const loop = this.#loop;
    const { timings, stepsUnderWay } = this.#serving.context;
    return {
      view: this.view,
      timings,
      stepsUnderWay,
      now: () => this.#ages.now(),
      verdict: (request) => loop.verdict(request),
      standings: (request) => loop.standings(request),
      standingsOfLabel: (label) => loop.standingsOfLabel(label),
      closed: () => this.#serving.closed(),
      launches: (pool) => loop.launches(pool),
      history: this.#options.history,
    };
  }

  /** What is going on, for people and checks: tasks under way and what the scheduler holds. */
  inspect(): { readonly tasks: readonly string[]; readonly complete: boolean } & ReturnType<Loop["inspect"]> {
    return { tasks: this.#tasks.list(), complete: this.view.complete, ...this.#loop.inspect() };
  }

  /** Takes a new configuration without a restart of what did not change. */
  async reconfigure(config: LauncherConfig): Promise<void> {
    this.#config = config;
    this.#ledgers.setTenants(config.tenantLimits);
    await this.#serving.apply(config.providers);
  }

  /**
   * Stops: pools leave the registry, running work ends by itself within `graceMs` or is given up, as after a crash. Records
   * that were given up are found by any launcher.
   */
  async close(graceMs = 10_000): Promise<void> {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort(new Error("the launcher is stopping"));
    this.#sweepTimer?.cancel();
    this.#loop.close();
    this.#leases.close();
    await this.#serving.unregister().catch(() => {});
    const grace = deadline(
      this.#options.clock,
      graceMs,
      () => new NodeyardError("launcher.stopped", "the launcher stopped before the work was done"),
    );
    await this.#tasks.drain(grace.signal);
    grace.cancel();
    this.#unsubscribe();
    await this.#serving.close();
    await this.#registration.unregister("launcher");
    await this.view.close();
  }

  async #begin(): Promise<void> {
    const { tree, identity } = this.#options;
    await persevere(this.#options, () => this.#registration.prepare());
    await this.view.start();
    this.#seed();
    this.view.onEvent((event) => this.#onView(event));
    this.#epoch = tree.session().epoch;
    this.#unsubscribe = tree.onSession((session) => this.#onSession(session));
    await persevere(this.#options, () => announceMember(tree, this.#memberName(), identity.version));
    const { hostname, version } = identity;
    await this.#registration.register(
      "launcher",
      newComponent({ kind: "launcher", hostname, version, state: "running" }),
    );
    // What follows a session that was lost meanwhile is up to #renew.
    this.#ages.start();
    this.#registered = tree.session().epoch === this.#epoch && tree.session().state !== "expired";
    this.#tellComplete();
    // Leases and sweeps do not wait for a cloud that does not answer.
    this.#leases.sweep();
    this.#scheduleSweep();
    await this.#serving.apply(this.#config.providers);
    this.#loop.push({ type: "sweep" });
  }

  /** What the view knew before anyone listened. */
  #seed(): void {
    for (const [id, after] of this.view.nodes.byId) this.#loop.push({ type: "node", id, after });
    for (const [id, after] of this.view.requests.byId) this.#loop.push({ type: "request", id, after });
    for (const image of this.view.images.names())
      this.#loop.push({ type: "image", image, after: this.view.images.get(image) });
    for (const [key, after] of this.view.components) this.#loop.push({ type: "component", key, after });
    this.#admission.seed();
  }

  /** The scheduler acts only on a whole picture, and only while others can see which pools it acts for. */
  #tellComplete(): void {
    const complete = this.view.complete && this.#registered;
    if (complete === this.#complete) return;
    this.#complete = complete;
    this.#loop.push({ type: "complete", complete });
  }

  #onView(event: ViewEvent): void {
    if (event.type === "complete") this.#tellComplete();
    else this.#loop.pushView(event);
    this.#leases.onEvent(event);
    this.#minReady.onEvent(event);
    this.#admission.onEvent(event);
    this.#deletions.onEvent(event);
    this.#answerer.onEvent(event);
    if (event.type === "node" && event.before !== undefined && event.after === undefined) {
      this.#serving.wakeInventory(event.before.record.provider);
    }
    if (event.type === "component" && event.after === undefined) this.#loop.push({ type: "sweep" });
  }

  #onSession(session: Session): void {
    if (session.state === "expired") {
      this.#options.log.error(
        { epoch: session.epoch },
        "the session with the tree is lost: all work of it is given up",
      );
      this.#tasks.abandon();
      this.#minReady.forget();
      this.#registered = false;
      this.#tellComplete();
      this.#loop.push({ type: "session-lost" });
    }
    if (session.state === "connected" && session.epoch !== this.#epoch) {
      this.#epoch = session.epoch;
      void this.#renew();
    }
  }

  /** Registration first: no pool serves what it is not registered for. */
  async #renew(): Promise<void> {
    const { tree, log, identity, clock } = this.#options;
    const { epoch } = tree.session();
    for (let attempt = 0; epoch === tree.session().epoch && !this.#stop.signal.aborted; attempt++) {
      try {
        await this.#registration.renew();
        await announceMember(tree, this.#memberName(), identity.version);
        if (epoch !== tree.session().epoch) return;
        this.#registered = true;
        this.#tellComplete();
        this.#loop.push({ type: "sweep" });
        return;
      } catch (error) {
        log.warn({ error: messageOf(error) }, "could not register again after a lost session; tries again");
        await sleep(clock, Math.min(5_000, 100 * 2 ** attempt));
      }
    }
  }

  #memberName(): string {
    return `${this.#options.identity.hostname}-${this.#options.tree.session().id.toString(16)}`;
  }

  #policy(): Policy {
    const { pools, providers } = this.#serving.locals();
    const { labels, tenantLimits, maxHoldAgeMs } = this.#config;
    return {
      pools,
      providers,
      labels,
      tenantLimits,
      maxHoldAgeMs,
      maxStarting: this.#options.maxStarting ?? 256,
    };
  }

  #scheduleSweep(): void {
    const { clock, random, log } = this.#options;
    this.#sweepTimer = clock.setTimer(
      jitter(random, SWEEP_MS),
      () => {
        this.#sweep()
          .catch((error) => log.warn({ error: messageOf(error) }, "a sweep failed; the next one tries again"))
          .finally(() => {
            if (!this.#stop.signal.aborted) this.#scheduleSweep();
          });
      },
      { background: true },
    );
  }

  /** The slow resync of everything that events drive. Each part fails alone. */
  async #sweep(): Promise<void> {
    if (!this.view.complete) return;
    const { tree, identity } = this.#options;
    if (!this.#ages.trusted) {
      await announceMember(tree, this.#memberName(), identity.version);
      this.#ages.sweep();
    }
    this.#loop.push({ type: "sweep" });
    this.#leases.sweep();
    this.#minReady.sweep();
    const { context } = this.#serving;
    const parts = await Promise.allSettled([
      removeGhosts(context),
      this.#lockParents.sweep(),
      this.#ledgers.audit(),
      this.#admission.sweep(),
      this.#deletions.sweep(),
    ]);
    const failed = parts.find((part) => part.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }
}
