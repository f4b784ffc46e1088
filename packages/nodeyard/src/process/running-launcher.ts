import { driverScanner } from "@nodeyard/driver";
import { createScanner } from "@nodeyard/keyscan";
import { messageOf } from "@nodeyard/runtime";
import type { Tree } from "@nodeyard/tree";
import {
  type Config,
  type ConfigDiff,
  type ConfigFiles,
  type ConfigWatch,
  watchConfig,
} from "../config/index.ts";
import { Launcher, type LauncherOptions, TIMING_EVENTS } from "../launcher/index.ts";
import { type Machine, VERSION } from "../machine/index.ts";
import { sliverAccess } from "../slivers/index.ts";
import { type FileJournal, JOURNAL, type Log, openJournal } from "../telemetry/index.ts";
import type { View } from "../view/index.ts";
import type { Drivers } from "./driver-registry.ts";
import { EVIDENCE, type FileEvidence, openEvidence } from "./edge/evidence-file.ts";
import { type Front, LauncherRole } from "./front/index.ts";
import { launcherConfig, logFindings } from "./open-config.ts";
import { stackDump } from "./stack-dump.ts";

export interface LauncherParts {
  readonly machine: Machine;
  readonly tree: Tree;
  readonly config: Config;
  readonly files: ConfigFiles;
  readonly drivers: Drivers;
  readonly log: Log;
  readonly front: Front;
  /** An existing folder; the journal is kept there. */
  readonly stateFolder: string;
  /** Called with each changed configuration, for other roles of the process. */
  readonly onConfig?: (config: Config) => void;
}

/** A launcher with everything around it: journal, host key scanner, and the watch of its configuration. */
export class RunningLauncher {
  readonly #launcher: Launcher;
  readonly #journal: FileJournal;
  readonly #evidence: FileEvidence;
  readonly #watch: ConfigWatch;
  readonly #ignoreDump: () => void;
  #config: Config;

  /** Resolves when its pools are registered, or `stopping` aborts. */
  static async start(parts: LauncherParts, stopping?: AbortSignal): Promise<RunningLauncher> {
    const { machine, tree, config, drivers, log, front, stateFolder } = parts;
    const { counters } = front;
    const { clock, random, hostname } = machine;
    const journal = openJournal(
      { file: `${stateFolder}/${JOURNAL}`, limits: config.journal },
      { clock, log },
    );
    const evidence = openEvidence(`${stateFolder}/${EVIDENCE}`, { clock, log });
    try {
      const options: LauncherOptions = {
        tree,
        clock,
        random,
        scan: driverScanner(createScanner({ clock, random })),
        log,
        journal,
        history: (subject) => journal.read(subject),
        evidence,
        slivers: sliverAccess(stateFolder),
        counters,
        identity: { hostname, fqdn: hostname, version: VERSION },
        driverOf: async (name) => drivers.driver(name),
        config: launcherConfig(config),
      };
      const launcher = await Launcher.start(options, stopping);
      // Nothing waits for it: estimates are better with it, and all else does without.
      void journal.latest(TIMING_EVENTS).then(({ events }) => launcher.recall(events));
      return new RunningLauncher(parts, launcher, { journal, evidence });
    } catch (error) {
      evidence.close();
      await journal.close();
      throw error;
    }
  }

  private constructor(
    parts: LauncherParts,
    launcher: Launcher,
    { journal, evidence }: { readonly journal: FileJournal; readonly evidence: FileEvidence },
  ) {
    const { machine, tree, config, files, drivers, log, front } = parts;
    const { counters, changed: onChange, tellsStatsd: elected } = front;
    this.#config = config;
    this.#launcher = launcher;
    this.#journal = journal;
    this.#evidence = evidence;
    this.#ignoreDump = machine.onDump(() => stackDump({ machine, tree, counters, log, launcher }));
    front.add(new LauncherRole(parts, this, { onChange, elected }));
    this.#watch = watchConfig({
      ...files,
      env: machine.env,
      drivers,
      clock: machine.clock,
      config,
      onChange: (next, diff, findings) => {
        logFindings(log, findings);
        log.info(changesIn(diff), "the configuration changed");
        if (diff.zookeeperNeedsRestart || diff.zookeeperServersChanged)
          log.warn({}, "changes of zookeeper-servers, -tls and -timeout take effect at the next start");
        front.reconfigured(next);
        void this.#take(next, log);
        parts.onConfig?.(next);
      },
      onFindings: (findings) => logFindings(log, findings),
      onError: (findings) => {
        logFindings(log, findings);
        log.error(
          { path: files.path },
          "cannot use the changed configuration; the former one stays in force",
        );
      },
    });
  }

  /** The picture of the tree, for other roles of the process. */
  get view(): View {
    return this.#launcher.view;
  }

  /** The configuration in force. */
  get config(): Config {
    return this.#config;
  }

  /** Whether requests are served now. */
  get serving(): boolean {
    return this.#launcher.serving;
  }

  /** Events that could not be written to the journal. */
  get journalLost(): number {
    return this.#journal.lost;
  }

  /** A reload does not wait for the clouds of the one before it. */
  async #take(config: Config, log: Log): Promise<void> {
    this.#config = config;
    this.#journal.limit(config.journal);
    try {
      await this.#launcher.reconfigure(launcherConfig(config));
    } catch (error) {
      log.error({ error: messageOf(error) }, "cannot apply the changed configuration");
    }
  }

  /** Ends it in good order; work that takes longer than `graceMs` is given up, as after a crash. */
  async close(graceMs: number): Promise<void> {
    this.#watch.close();
    await this.#launcher.close(graceMs);
    this.#ignoreDump();
    await this.#journal.close();
    this.#evidence.close();
  }
}

/** Only what did change. */
function changesIn({ any: _, ...diff }: ConfigDiff): object {
  const changed = Object.entries(diff).filter(([, value]) =>
    Array.isArray(value) ? value.length > 0 : value,
  );
  return Object.fromEntries(changed);
}
