import { type Audit, type ConfigPlan, EVENTS, EventFile, type Readiness } from "@nodeyard/api";
import type { Config } from "@nodeyard/config";
import { Election } from "@nodeyard/coordination";
import { driverScanner } from "@nodeyard/driver";
import { createScanner } from "@nodeyard/keyscan";
import { DEMAND_EVENTS, Launcher, type LauncherOptions, TIMING_EVENTS } from "@nodeyard/launcher";
import { gaugeSamples, type StatsdSample } from "@nodeyard/legacy";
import {
  backlogGauges,
  CountHistory,
  type Gauge,
  gaugeOf,
  type HistoryPoint,
  imageGauges,
  limitGauges,
  Population,
  providerGauges,
  tenantGauges,
  waitingGauges,
} from "@nodeyard/metrics";
import { paths } from "@nodeyard/model";
import type { LauncherUse, ProviderMachines } from "@nodeyard/operations";
import type { Row } from "@nodeyard/operations/listing";
import { openTraces, settledWithin, type TraceExport } from "@nodeyard/runtime";
import { FileJournal, JOURNAL, Live } from "@nodeyard/telemetry";
import { VERSION } from "@nodeyard/telemetry/machine";
import { openAudit } from "./audit.ts";
import { checkNode } from "./edge/check-node.ts";
import { EVIDENCE, type FileEvidence, openEvidence } from "./edge/evidence-file.ts";
import { makeStateFolder } from "./edge/files.ts";
import { planConfig } from "./edge/plan-config.ts";
import { launcherConfig } from "./open-config.ts";
import { type Role, treeReadiness } from "./role.ts";
import type { RoleParts } from "./role-parts.ts";
import { stackDump } from "./stack-dump.ts";
import { type Answers, type SurveyOf, surveyRows } from "./surveys.ts";

/** What a launcher role is made of. */
export interface LauncherParts extends RoleParts {
  /** Folder of the journal and of other files that outlive the process. It is created when it is missing. */
  readonly stateFolder: string;
}

/** Milliseconds to send the last spans when the process stops. The collector may not answer. */
const TRACES_MS = 2_000;

/** Most requests that a plan by the API replays: the latest. */
const PLANNED = 20_000;

/** The files that the role opens and closes. */
interface Kept {
  readonly journal: FileJournal;
  readonly evidence: FileEvidence;
  readonly events: EventFile;
  readonly traces: TraceExport | undefined;
}

/**
 * A launcher with its journal and host key scanner, and its figures: of the tree, of its limits, and of its health. Between
 * `start` and `close` it serves the pools of its configuration.
 */
export class LauncherRole implements Role {
  readonly known: Role["known"];
  readonly shared: NonNullable<Role["shared"]>;
  readonly audit: Audit;
  readonly #parts: LauncherParts;
  readonly #launcher: Launcher;
  readonly #journal: FileJournal;
  readonly #evidence: FileEvidence;
  readonly #traces: TraceExport | undefined;
  /** Counts of the tree for metrics, kept by events. */
  readonly #population: Population;
  /** The same every five minutes for a day, for the page. */
  readonly #history: CountHistory;
  /** Among all launchers, for who sends the statistics of the tree; undefined: this one sends none. */
  readonly #election: Election | undefined;
  readonly #ignoreDump: () => void;
  #config: Config;
  /** A plan by the API is being made; there is one at a time. */
  #planning = false;

  /**
   * Opens its files and starts the launcher. Resolves when the pools are registered, or `stopping` aborts. Rejects as the
   * launcher does; its files are closed then.
   */
  static async start(parts: LauncherParts, stopping?: AbortSignal): Promise<LauncherRole> {
    const { machine, tree, config, drivers, front, stateFolder } = parts;
    const { clock, random, hostname } = machine;
    const log = parts.log.area("launcher");
    const traces = await openTraces(machine.env, { name: "nodeyard", version: VERSION, hostname });
    makeStateFolder(stateFolder);
    const journal = new FileJournal(
      { file: `${stateFolder}/${JOURNAL}`, limits: config.journal },
      { clock, log, counters: front.counters },
    );
    const evidence = openEvidence(`${stateFolder}/${EVIDENCE}`, { clock, log });
    const events = new EventFile(`${stateFolder}/${EVENTS}`);
    const handles = { tree, clock, random };
    try {
      const options: LauncherOptions = {
        tree,
        clock,
        random,
        scan: driverScanner(createScanner({ clock, random })),
        check: checkNode,
        log,
        journal,
        history: (subject) => journal.read(subject),
        onView: (view) => front.seen({ view, handles, events }),
        evidence,
        stateFolder,
        ...(traces === undefined ? {} : { trace: traces.emit }),
        counters: front.counters,
        identity: { hostname, fqdn: hostname, version: VERSION },
        driverOf: async (name) => drivers.driver(name),
        config: launcherConfig(config),
      };
      const launcher = await Launcher.start(options, stopping);
      // In the background: only estimates and spares need the past, and they are merely better with it.
      for (const past of [TIMING_EVENTS, DEMAND_EVENTS])
        void journal.latest(past).then(({ events }) => launcher.recall(events));
      return new LauncherRole(parts, launcher, { journal, evidence, events, traces });
    } catch (error) {
      evidence.close();
      await journal.close();
      await traces?.close();
      throw error;
    }
  }

  private constructor(parts: LauncherParts, launcher: Launcher, kept: Kept) {
    const { journal, evidence, events, traces } = kept;
    const { machine, tree, config, log, front } = parts;
    const { clock, random, hostname, pid } = machine;
    const { counters, changed } = front;
    this.#parts = parts;
    this.#config = config;
    this.#launcher = launcher;
    this.#journal = journal;
    this.#evidence = evidence;
    this.#traces = traces;
    this.audit = openAudit(launcher.view, journal, log.area("api"));
    this.known = { view: launcher.view, handles: { tree, clock, random }, events };
    this.#population = new Population(launcher.view, changed);
    this.#history = new CountHistory(this.#population, () => launcher.view.complete, { clock, journal });
    // The last day of an earlier process; until it is read, the history begins now.
    void journal.latest(["counts.noted"]).then(({ events }) => this.#history.recall(events));
    const live = new Live(clock);
    if (front.tellsStatsd) {
      // Python and Nodeyard launchers elect here the one that sends the tree's figures (docs/contract/operations.md, "Figures of the whole").
      const place = { parent: paths.statsElection, data: Buffer.from(`${hostname}-${pid}`) };
      this.#election = new Election({ tree, clock, random, log, live }, place, changed);
      this.#election.start();
    }
    this.shared = {
      leading: () => this.#election?.leading === true,
      gauges: () => gaugeSamples(this.#population.gauges(), hostname),
    };
    this.#ignoreDump = machine.onDump(() =>
      stackDump({ machine, tree, counters, log, launcher, live: () => live.list() }),
    );
    front.add(this);
  }

  /** Ready when requests are served: the tree is connected and read, and the pools are registered. */
  readiness(): Readiness {
    const { ready, why } = treeReadiness(this.#parts);
    if (!ready) return { ready, why };
    if (this.#launcher.serving) return { ready, why: "" };
    return { ready: false, why: "the tree is being read, or the pools are not registered yet" };
  }

  stuck(): string | undefined {
    return this.#launcher.stuck();
  }

  readonly providers = (): readonly LauncherUse[] => {
    const launcher = this.#parts.machine.hostname;
    return this.#launcher.providers().map((standing) => ({ launcher, ...standing }));
  };

  readonly tenants = () => this.#launcher.tenants();

  readonly sliverMachines = (withinMs?: number): Promise<readonly ProviderMachines[]> =>
    this.#launcher.sliverMachines(withinMs);

  readonly plan = async (text: string, days: number): Promise<ConfigPlan> => {
    if (this.#planning) return "busy";
    this.#planning = true;
    const { files, stateFolder, machine } = this.#parts;
    const journal = `${stateFolder}/${JOURNAL}`;
    return planConfig({ files, text, journal, days, most: PLANNED }, machine.clock).finally(() => {
      this.#planning = false;
    });
  };

  readonly history = (): readonly HistoryPoint[] => this.#history.points();

  /** For Prometheus, which asks each launcher: figures of the whole tree are among them. */
  gauges(): readonly Gauge[] {
    return [
      ...this.#population.gauges(),
      ...imageGauges(this.#launcher.view),
      ...waitingGauges(this.#launcher.view),
      ...providerGauges(this.#launcher.providers()),
      ...tenantGauges(this.#launcher.tenants({ clients: false })),
      gaugeOf("clock_trusted", this.#launcher.clockTrusted ? 1 : 0),
      ...this.#own(),
    ];
  }

  /** For statsd: without the figures of the tree, which one launcher sends for all. */
  samples(): readonly StatsdSample[] {
    return gaugeSamples(this.#own(), this.#parts.machine.hostname);
  }

  readonly survey = (what: SurveyOf, only: string | undefined): Promise<Answers<Row>> => {
    const { drivers, log } = this.#parts;
    const { handles } = this.known;
    return surveyRows(what, { handles, config: this.#config, drivers, log: log.area("api"), only });
  };

  reconfigure(config: Config): Promise<void> {
    this.#config = config;
    this.#journal.limit(config.journal);
    return this.#launcher.reconfigure(launcherConfig(config));
  }

  async close(graceMs: number): Promise<void> {
    await this.#launcher.close(graceMs);
    // The journal is closed after the launcher, which writes to it until its last task has ended.
    this.#ignoreDump();
    this.#history.close();
    this.#population.close();
    await this.#election?.close();
    await this.#journal.close();
    if (this.#traces !== undefined)
      await settledWithin(this.#parts.machine.clock, TRACES_MS, this.#traces.close());
    this.#evidence.close();
  }

  /** Figures of this launcher alone, which no other one can send for it. */
  #own(): readonly Gauge[] {
    const { providers, tenantLimits } = this.#config;
    const maxServers = new Map(
      providers.map(({ name, pools }) => [
        name,
        pools.map(({ limits }) => limits.instances ?? Number.POSITIVE_INFINITY),
      ]),
    );
    return [
      ...limitGauges({ maxServers, tenants: tenantLimits }),
      gaugeOf("tree_calls", this.#parts.tree.underWay().length),
      ...backlogGauges(this.#launcher.view),
    ];
  }
}
