import {
  type About,
  Answerer,
  type BuildLogPart,
  type BuildLogRange,
  type Testimony,
} from "@nodeyard/asking";
import type { BuilderSettings } from "@nodeyard/config";
import {
  Controller,
  Membership,
  mayAct,
  openInstallation,
  Registration,
  StandingReporter,
} from "@nodeyard/coordination";
import type { Driver, ProviderConfig, Scanner } from "@nodeyard/driver";
import { canaryImage } from "@nodeyard/model";
import { backoff, type Clock, messageOf, type Random, settledWithin } from "@nodeyard/runtime";
import { type Counters, Live, type LiveWork, type Log } from "@nodeyard/telemetry";
import { Fence, isInterrupted, retryInterrupted, type Tree, treeNow } from "@nodeyard/tree";
import { type NodeEntry, View } from "@nodeyard/view";
import { judgeTrials } from "./control/canary.ts";
import type { BuilderContext } from "./control/context.ts";
import { imageUploadOf, sweepForgotten, sweepImages } from "./control/janitor.ts";
import { LeakedImages } from "./control/leaked-images.ts";
import { sweepFiles } from "./control/local-files.ts";
import { imageOutlooks } from "./control/outlook.ts";
import { type Progress, ProgressTable } from "./control/progress.ts";
import { ImageProviders } from "./control/providers.ts";
import { builderFacts, recallFailures } from "./control/report.ts";
import { SourceTable } from "./control/sources.ts";
import { Workers } from "./control/workers.ts";
import { readBuildLog, untilLogGrows } from "./edge/build-log.ts";
import type { Disk } from "./runs/disk.ts";

/** Milliseconds between two sweeps without an event. */
const SWEEP_MS = 60_000;
/** Default numbers of concurrent builds and uploads. One build, because each needs the CPU and disk of the whole host. */
const [BUILDS, UPLOADS] = [1, 4] as const;
/** The most callers that wait for more of a log, because each needs a file watch of the system. */
const LOG_WAITS = 32;
/** The pause between an event and the sweep that it causes, milliseconds, because events come in groups. */
const SOON_MS = 1_000;

/** The part of the configuration that a builder uses; `reconfigure` replaces it. */
export interface BuilderConfig {
  readonly providers: readonly ProviderConfig[];
  readonly builder: BuilderSettings;
}

/** The handles and settings of a builder. */
export interface BuilderOptions {
  readonly tree: Tree;
  readonly clock: Clock;
  readonly random: Random;
  readonly scan: Scanner;
  readonly log: Log;
  readonly counters: Counters;
  readonly disk: Disk;
  readonly identity: { readonly hostname: string; readonly fqdn: string; readonly version: string };
  readonly driverOf: (name: string) => Promise<Driver>;
  readonly config: BuilderConfig;
  /** The view of a launcher in the same process, which starts and closes it; absent: the builder has its own. */
  readonly view?: View;
  readonly buildWorkers?: number;
  readonly uploadWorkers?: number;
}

/**
 * The builder role: builds diskimages, uploads them, and deletes what is no longer needed. Several builders share the work by locks on
 * single images and uploads; none of them leads.
 */
export class Builder {
  readonly view: View;
  readonly #options: BuilderOptions;
  readonly #registration: Registration;
  readonly #providers: ImageProviders;
  readonly #workers: Workers;
  readonly #answerer: Answerer;
  readonly #reporter: StandingReporter;
  readonly #context: BuilderContext;
  readonly #stop = new AbortController();
  /** Callers of `buildLog` that wait for more. */
  #logWaits = 0;
  #config: BuilderConfig;
  readonly #membership: Membership;
  /** Repeats everything that events drive, in case one was lost, and deletes what has become superfluous. */
  readonly #sweep: Controller;
  /** Lists the images of the clouds and deletes ours that have no record. It is apart, because a cloud that hangs must not delay the other sweep. */
  readonly #leakSweep: Controller;
  #began = false;
  /** Uploads that are deleted when the last node that booted from them is gone. */
  #awaited: ReadonlySet<string> = new Set();
  /** Sweeps in a row that left a build to another builder. */
  #crossed = 0;
  readonly #putOff = (key: string) => this.#workers.putOff(key);
  #unlisten: () => void = () => {};

  /** Starts a builder and resolves when it works. Rejects when the tree or the disk cannot be used. */
  static async start(options: BuilderOptions): Promise<Builder> {
    const installation = await retryInterrupted(options, () =>
      openInstallation(options.tree, options.random),
    );
    const builderId = await options.disk.builderId(options.random);
    const builder = new Builder(options, installation, builderId);
    await builder.#begin();
    return builder;
  }

  private constructor(options: BuilderOptions, installation: string, builderId: string) {
    this.#options = options;
    this.#config = options.config;
    const { tree, clock, random, log, counters, disk, identity } = options;
    this.view = options.view ?? new View({ tree, clock, random, log, counters });
    this.#registration = new Registration({ tree, clock, random, log }, identity.hostname);
    const live = new Live(clock);
    this.#providers = new ImageProviders(
      { tree, clock, random, log, counters, live, installation },
      options.scan,
      options.driverOf,
      () => this.#workers.turn(),
      () => this.#reporter.wake(),
    );
    const config = () => this.#config.builder;
    this.#context = {
      tree,
      view: this.view,
      clock,
      random,
      log,
      counters,
      live,
      fence: new Fence(tree, clock, random),
      disk,
      progress: new ProgressTable(clock),
      sources: new SourceTable(disk, log, config),
      failures: new Map(),
      installation,
      builderId,
      fqdn: identity.fqdn,
      get settings() {
        return config();
      },
      providers: this.#providers.open,
    };
    this.#membership = new Membership(
      this.#context,
      { kind: "builder", prefix: "builder-", ...identity },
      this.#registration,
      {
        renewed: () => {
          this.#workers.turn();
          this.#reporter.wake();
        },
      },
    );
    const { hostname } = identity;
    this.#reporter = new StandingReporter(
      this.#context,
      { name: () => this.#membership.name, hostname },
      () => builderFacts(this.#context, hostname, this.#providers.closed, this.#putOff, this.stuck()),
    );
    this.#sweep = new Controller(this.#context, {
      name: "builds, uploads and files that go",
      site: "builder/builder.ts",
      resyncMs: SWEEP_MS,
      reconcile: (signal) => this.#look(signal),
      failed: (error) => this.#sweepFailed(error),
    });
    const leaked = new LeakedImages(this.#context);
    this.#leakSweep = new Controller(this.#context, {
      name: "images without a record",
      site: "builder/control/leaked-images.ts",
      resyncMs: SWEEP_MS,
      reconcile: (signal) => leaked.look(signal),
      failed: (error) => this.#sweepFailed(error),
    });
    this.#answerer = new Answerer({
      tree,
      clock,
      log,
      now: () => treeNow(options),
      member: () => this.#membership.name,
      hostname: identity.hostname,
      version: identity.version,
      answer: (about) => this.#answer(about),
    });
    this.#workers = new Workers(this.#context, {
      ...this.workers,
      signal: this.#stop.signal,
      onEnd: () => {
        this.#sweep.wake(SOON_MS);
        this.#reporter.wake();
      },
    });
  }

  /** Whether due builds and uploads are begun now. */
  get working(): boolean {
    return this.#began && this.view.complete && !this.#stop.signal.aborted;
  }

  /** Most concurrent builds and uploads. */
  get workers(): { readonly builds: number; readonly uploads: number } {
    const { buildWorkers = BUILDS, uploadWorkers = UPLOADS } = this.#options;
    return { builds: buildWorkers, uploads: uploadWorkers };
  }

  /** Builds and uploads under way in this process. */
  progress(): readonly Progress[] {
    return this.#context.progress.list();
  }

  /** A part of the log of a build that ran here; undefined: there is none. With `waitMs` it is waited for until there is more than before `from`. */
  async buildLog(range: BuildLogRange, waitMs = 0): Promise<BuildLogPart | undefined> {
    const { logDir } = this.#config.builder;
    const part = await readBuildLog(logDir, range);
    if (part === undefined || part.text !== "" || waitMs === 0 || this.#logWaits >= LOG_WAITS) return part;
    this.#logWaits++;
    try {
      await untilLogGrows(logDir, range, part.size, { clock: this.#options.clock, ms: waitMs });
    } finally {
      this.#logWaits--;
    }
    return readBuildLog(logDir, range);
  }

  /** Its controllers, for the stack dump. */
  live(): readonly LiveWork[] {
    return this.#context.live.list();
  }

  /** The controller that is stuck, as `Live.stuck` names it; undefined when all of them make progress. */
  stuck(): string | undefined {
    return this.#context.live.stuck();
  }

  /** Takes a new configuration. */
  async reconfigure(config: BuilderConfig): Promise<void> {
    this.#config = config;
    await this.#providers.apply(this.#relevant());
    this.#workers.turn();
    this.#reporter.wake();
    this.#sweep.wake(SOON_MS);
  }

  /** Ends builds and uploads under way, as after a crash; their records are settled at the next start. */
  async close(graceMs = 10_000): Promise<void> {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort(new Error("the builder is stopping"));
    this.#membership.stop();
    const ended = [
      this.#workers.drain(),
      this.#sweep.close(),
      this.#leakSweep.close(),
      this.#reporter.close(),
    ];
    await settledWithin(this.#options.clock, graceMs, Promise.all(ended));
    await this.#membership.leave();
    await this.#providers.close();
    this.#unlisten();
    if (this.#options.view === undefined) await this.view.close();
  }

  async #begin(): Promise<void> {
    const { disk, log } = this.#options;
    // First stop what a former process of this host left running, so that it does not write into the files that are read next.
    for (const { intent } of await disk.list())
      if (intent.installation === this.#context.installation)
        await disk
          .reclaim(intent)
          .catch((error) =>
            log.warn({ ...intent, error: messageOf(error) }, "cannot remove what an interrupted build left"),
          );
    await this.#membership.prepare();
    if (this.#options.view === undefined) await this.view.start();
    this.#unlisten = this.view.onEvent((event) => {
      this.#answerer.onEvent(event);
      if (event.type === "image") {
        this.#workers.changed(event.image);
        this.#reporter.wake();
      }
      if (event.type === "complete") this.#workers.turn();
      if (event.type === "node" && event.after === undefined && this.#isAwaited(event.before))
        this.#sweep.wake(SOON_MS);
      const isTrialReport = event.type === "own" && canaryImage(event.path) !== undefined;
      if (isTrialReport || event.type === "image" || event.type === "complete") this.#sweep.wake(SOON_MS);
    });
    await this.#membership.begin();
    this.#reporter.start();
    await this.#providers.apply(this.#relevant());
    // Before any new work: the sweep settles the records of builds and uploads that a former process left.
    await this.#sweep.look();
    await recallFailures(this.#context);
    this.#workers.open();
    this.#leakSweep.wake();
    this.#began = true;
  }

  /** Providers that list images, or that have uploads in the tree to delete. */
  #relevant(): readonly ProviderConfig[] {
    const { providers, builder } = this.#config;
    const present = new Set<string>();
    for (const image of this.view.images.names())
      for (const { provider } of this.view.images.uploads(image)) present.add(provider);
    return providers.filter(
      ({ name }) => (builder.uploads.get(name)?.images.size ?? 0) > 0 || present.has(name),
    );
  }

  /** Answers a question of `explain`: the work on an image, or on all of them. A builder knows nothing of requests and nodes. */
  async #answer({ image, log }: About): Promise<Testimony> {
    const images = this.progress().filter((work) => image === undefined || work.image === image);
    const part = log && (await this.buildLog(log));
    const testimony: Testimony = {
      wait: null,
      pools: [],
      underWay: [],
      events: [],
      problem: "a builder keeps no journal",
      images: [...images],
      ...(part !== undefined && { log: part }),
    };
    if (image === undefined) return testimony;
    return { ...testimony, imageStandings: await imageOutlooks(this.#context, image, this.#putOff) };
  }

  /** Whether the deletion of an upload waits for this node. */
  #isAwaited(node: NodeEntry | undefined): boolean {
    const upload = imageUploadOf(node?.record.imageId ?? null);
    return upload !== undefined && this.#awaited.has(upload);
  }

  /** One sweep. The order matters: records go before files, because a file without a record is what may be removed. */
  async #look(signal: AbortSignal): Promise<number | undefined> {
    if (!mayAct(this.#context)) return;
    const { awaited, crossed } = await sweepImages(this.#context, signal);
    this.#awaited = awaited;
    this.#crossed = crossed ? this.#crossed + 1 : 0;
    await sweepForgotten(this.#context);
    await sweepFiles(this.#context, (build) => this.#workers.isBusy(build));
    await this.#context.sources.refresh();
    await judgeTrials(this.#context);
    this.#workers.turn();
    return crossed ? backoff(this.#options.random, this.#crossed, SOON_MS, SWEEP_MS) : undefined;
  }

  #sweepFailed(error: unknown): undefined {
    const { log, counters } = this.#options;
    if (!isInterrupted(error)) counters.add("builder.unexpected", 1, { place: "sweep" });
    log.warn({ error: messageOf(error) }, "a sweep failed; the next one will retry");
  }
}
