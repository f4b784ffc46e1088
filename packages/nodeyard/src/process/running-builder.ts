import { driverScanner } from "@nodeyard/driver";
import { createScanner } from "@nodeyard/keyscan";
import { messageOf } from "@nodeyard/runtime";
import {
  Builder,
  type BuilderConfig,
  type FolderLock,
  HostDisk,
  lockImages,
  type Progress,
  probeIsolation,
} from "../builder/index.ts";
import { type Config, type ConfigWatch, watchConfig } from "../config/index.ts";
import { VERSION } from "../machine/index.ts";
import type { LiveWork, Log } from "../telemetry/index.ts";
import type { View } from "../view/index.ts";
import { isFolder } from "./edge/files.ts";
import { ProcessError } from "./errors.ts";
import { BuilderRole } from "./front/index.ts";
import { logFindings } from "./open-config.ts";
import type { LauncherParts } from "./running-launcher.ts";
import { stackDump } from "./stack-dump.ts";

/** Between two lines of progress in the log, milliseconds. */
const TELL_MS = 30_000;

export interface BuilderParts extends Omit<LauncherParts, "stateFolder" | "onConfig"> {
  /** A launcher's, where one runs in this process. */
  readonly view?: View;
  readonly buildWorkers?: number;
  readonly uploadWorkers?: number;
}

/** A builder with everything around it: the disk, the watch of its configuration, and what it tells of its progress. */
export class RunningBuilder {
  readonly #builder: Builder;
  readonly #watch: ConfigWatch;
  readonly #tell: { cancel(): void };
  readonly #ignoreDump: () => void;
  readonly #lock: FolderLock | undefined;
  #config: Config;
  #reloading: Promise<void> = Promise.resolve();

  /** Resolves when it works. Rejects with ProcessError where it has no folder to work in, or another builder works in it. */
  static async start(parts: BuilderParts): Promise<RunningBuilder> {
    const { machine, tree, config, drivers, log, view, buildWorkers, uploadWorkers } = parts;
    const { clock, random, hostname } = machine;
    const folder = imagesFolder(config, parts.files.path);
    const isolation = probeIsolation();
    if (isolation !== "namespaces")
      log.warn(
        { isolation },
        isolation === "group"
          ? "builds get no namespaces of their own here: processes that leave the build's process group are ended by the next sweep only"
          : "builds run in a user namespace, without real root: diskimage-builder needs a builder that is root",
      );
    const { counters } = parts.front;
    const lock = lockedFolder(folder, parts.files.path, log);
    try {
      const builder = await Builder.start({
        tree,
        clock,
        random,
        scan: driverScanner(createScanner({ clock, random })),
        log,
        counters,
        disk: new HostDisk(folder, isolation),
        identity: { hostname, fqdn: hostname, version: VERSION },
        driverOf: async (name) => drivers.driver(name),
        config: builderConfig(config),
        ...(view === undefined ? {} : { view }),
        ...(buildWorkers === undefined ? {} : { buildWorkers }),
        ...(uploadWorkers === undefined ? {} : { uploadWorkers }),
      });
      return new RunningBuilder(parts, builder, lock);
    } catch (error) {
      lock?.release();
      throw error;
    }
  }

  private constructor(parts: BuilderParts, builder: Builder, lock: FolderLock | undefined) {
    const { machine, tree, config, files, drivers, log, front } = parts;
    const { counters } = front;
    this.#builder = builder;
    this.#lock = lock;
    this.#config = config;
    front.add(new BuilderRole(parts, this, parts.view === undefined));
    const live = () => builder.progress().map((one) => work(one, machine.clock.monotonic()));
    this.#ignoreDump = machine.onDump(() => stackDump({ machine, tree, counters, log, live }));
    this.#tell = tellProgress(machine.clock, () => {
      for (const one of builder.progress()) log.info(told(one), `${one.kind} under way`);
    });
    const folder = config.builder.imagesDir;
    this.#watch = watchConfig({
      ...files,
      env: machine.env,
      drivers,
      clock: machine.clock,
      config,
      onChange: (next, _diff, findings) => {
        logFindings(log, findings);
        if (next.builder.imagesDir !== folder)
          log.warn({ folder }, "a change of images-dir takes effect at the next start");
        front.reconfigured(next);
        this.#config = next;
        this.#reloading = this.#reloading
          .then(() => builder.reconfigure(builderConfig(next)))
          .catch((error) => log.error({ error: messageOf(error) }, "cannot apply the changed configuration"));
      },
      onFindings: (findings) => logFindings(log, findings),
      onError: (findings) => logFindings(log, findings),
    });
  }

  /** The configuration in force. */
  get config(): Config {
    return this.#config;
  }

  get view(): View {
    return this.#builder.view;
  }

  /** Whether builds and uploads begin now as they are due. */
  get working(): boolean {
    return this.#builder.working;
  }

  get workers(): Builder["workers"] {
    return this.#builder.workers;
  }

  progress(): readonly Progress[] {
    return this.#builder.progress();
  }

  /** Ends builds and uploads under way; what is left of them is settled by the next start. */
  async close(graceMs: number): Promise<void> {
    this.#watch.close();
    this.#tell.cancel();
    this.#ignoreDump();
    await this.#reloading;
    await this.#builder.close(graceMs);
    this.#lock?.release();
  }
}

/** Whether the configuration gives a builder anything to do. */
export function wantsBuilder({ builder }: Config): boolean {
  return builder.imagesDir !== null && builder.images.size > 0;
}

function builderConfig({ providers, builder }: Config): BuilderConfig {
  return { providers, builder };
}

function imagesFolder({ builder: { imagesDir } }: Config, path: string): string {
  if (imagesDir === null)
    throw new ProcessError(
      "process.no_images_dir",
      `${path} names no images-dir: add the folder that built images are kept in`,
    );
  if (!isFolder(imagesDir))
    throw new ProcessError(
      "process.no_images_dir",
      `images-dir ${imagesDir} of ${path} is not a folder: create it, on a disk with room for images`,
    );
  return imagesDir;
}

/** Undefined where the file system has no locks, or cannot be written now: told, for no build is lost by that alone. */
function lockedFolder(folder: string, path: string, log: Log): FolderLock | undefined {
  const lock = lockImagesOrTell(folder, log);
  if (lock !== "taken") return lock;
  throw new ProcessError(
    "process.images_dir_taken",
    `another builder works in images-dir ${folder} of ${path}, and two would end each other's builds: stop it, or give each builder its own folder`,
  );
}

function lockImagesOrTell(folder: string, log: Log): FolderLock | "taken" | undefined {
  try {
    return lockImages(folder);
  } catch (error) {
    log.warn(
      { folder, error: messageOf(error) },
      "cannot lock images-dir: make sure that no other builder uses it",
    );
    return undefined;
  }
}

function tellProgress(clock: LauncherParts["machine"]["clock"], tell: () => void): { cancel(): void } {
  let timer = clock.setTimer(TELL_MS, again, { background: true });
  function again(): void {
    tell();
    timer = clock.setTimer(TELL_MS, again, { background: true });
  }
  return { cancel: () => timer.cancel() };
}

function told({ kind: _, etaMs, bytesPerSecond, elapsedMs, ...facts }: Progress): object {
  return {
    ...facts,
    seconds: Math.round(elapsedMs / 1000),
    MBps: Number((bytesPerSecond / 1e6).toFixed(1)),
    ...(etaMs === null ? {} : { etaSeconds: Math.round(etaMs / 1000) }),
  };
}

function work({ kind, image, build, provider, phase, elapsedMs }: Progress, now: number): LiveWork {
  const to = provider === null ? "" : ` to ${provider}`;
  const since = now - elapsedMs;
  const site = `builder/control/${kind}.ts`;
  return {
    kind: "worker",
    name: `${kind} ${image}-${build}${to}`,
    site,
    since,
    step: phase,
    stepSince: since,
    locks: [],
  };
}
