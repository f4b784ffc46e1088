import type { Readiness, Work } from "@nodeyard/api";
import { Builder, type BuilderConfig, HostDisk, type Progress, probeIsolation } from "@nodeyard/builder";
import type { Config } from "@nodeyard/config";
import { driverScanner } from "@nodeyard/driver";
import { createScanner } from "@nodeyard/keyscan";
import { gaugeSamples, type StatsdSample } from "@nodeyard/legacy";
import { builderFigures, type Gauge, gaugeOf, imageGauges, workGauges } from "@nodeyard/metrics";
import type { BuildLogPart, BuildLogRange } from "@nodeyard/operations";
import { defined } from "@nodeyard/runtime";
import type { LiveWork } from "@nodeyard/telemetry";
import { VERSION } from "@nodeyard/telemetry/machine";
import type { View } from "@nodeyard/view";
import { openImagesFolder } from "./images-folder.ts";
import { type Role, treeReadiness } from "./role.ts";
import type { RoleParts } from "./role-parts.ts";
import { stackDump } from "./stack-dump.ts";

/** Milliseconds between two lines about the progress of a build or upload in the log. */
const REPORT_MS = 30_000;

/** What a builder role is made of. */
export interface BuilderParts extends RoleParts {
  /** The view of the launcher in the same process, which closes it; absent: the builder opens its own. */
  readonly view?: View;
  /** Builds at once; absent: the builder's default. So for uploads. */
  readonly buildWorkers?: number;
  readonly uploadWorkers?: number;
}

/** A builder with its disk, and its figures: images, current work and health. */
export class BuilderRole implements Role {
  readonly known: Role["known"];
  readonly #parts: Pick<BuilderParts, "machine" | "tree" | "log" | "view">;
  readonly #builder: Builder;
  /** The configuration in force, of which `samples` counts images that are paused. */
  #config: Config;
  /** The reloads so far; each waits for the one before. */
  #reloading: Promise<void> = Promise.resolve();
  /** Cleanups that run when the builder closes; the last one first. */
  readonly #ends: (() => void)[] = [];

  /** Starts the builder. Rejects with ProcessError when it has no images folder, or another builder uses that folder. */
  static async start(parts: BuilderParts): Promise<BuilderRole> {
    const log = parts.log.area("builder");
    const { machine, tree, config, files, drivers, front, view, buildWorkers, uploadWorkers } = parts;
    const { clock, random, hostname } = machine;
    // The lock first: a second builder would take the builds of the first for leftovers.
    const folder = openImagesFolder(config, files.path, log);
    try {
      const isolation = probeIsolation();
      if (isolation !== "namespaces")
        log.warn(
          { isolation },
          isolation === "group"
            ? "builds get no namespaces of their own here: processes that leave the build's process group are ended by the next sweep only"
            : "builds run in a user namespace, without real root: diskimage-builder needs a builder that is root",
        );
      const builder = await Builder.start({
        tree,
        clock,
        random,
        scan: driverScanner(createScanner({ clock, random })),
        log,
        counters: front.counters,
        disk: await HostDisk.open(folder.path, isolation),
        identity: { hostname, fqdn: hostname, version: VERSION },
        driverOf: async (name) => drivers.driver(name),
        config: builderConfig(config),
        ...defined({ view, buildWorkers, uploadWorkers }),
      });
      const role = new BuilderRole(parts, builder);
      role.#ends.push(() => folder.lock?.[Symbol.dispose]());
      role.#attend(parts);
      return role;
    } catch (error) {
      folder.lock?.[Symbol.dispose]();
      throw error;
    }
  }

  /** `builder` is started already, with the configuration in `parts`. */
  constructor(parts: Pick<BuilderParts, "machine" | "tree" | "log" | "view" | "config">, builder: Builder) {
    const { tree, machine, config } = parts;
    this.#parts = parts;
    this.#builder = builder;
    this.#config = config;
    this.known = { view: builder.view, handles: { tree, clock: machine.clock, random: machine.random } };
  }

  /** For the API and `explain`. */
  readonly work = (): readonly Work[] => this.#builder.progress();

  readonly buildLog = (range: BuildLogRange, waitMs: number): Promise<BuildLogPart | undefined> =>
    this.#builder.buildLog(range, waitMs);

  /** Ready when due builds are begun: the tree is connected and has been read. */
  readiness(): Readiness {
    const { ready, why } = treeReadiness(this.#parts);
    if (!ready) return { ready, why };
    if (this.#builder.working) return { ready, why: "" };
    return { ready: false, why: "the tree is being read" };
  }

  stuck(): string | undefined {
    return this.#builder.stuck();
  }

  gauges(): readonly Gauge[] {
    // Beside a launcher in the same process, that one reports the images.
    const images = this.#parts.view === undefined ? imageGauges(this.#builder.view) : [];
    return [...images, ...workGauges(this.work()), ...this.#workers()];
  }

  samples(): readonly StatsdSample[] {
    const { hostname } = this.#parts.machine;
    const { view } = this.#builder;
    const { builder } = this.#config;
    const images = imageGauges(view);
    const asked = images.filter(({ name, value }) => name === "image_build_requested" && value > 0);
    const building = [...builder.images.values()].map(({ name, paused }) => ({
      image: name,
      paused: paused || (view.images.get(name)?.paused ?? false),
    }));
    const uploading = [...builder.uploads].flatMap(([provider, upload]) =>
      [...upload.images].map(([image, { paused }]) => ({ image, provider, paused })),
    );
    const own = builderFigures(this.work(), building, uploading, asked.length);
    return gaugeSamples([...images, ...this.#workers(), ...own], hostname);
  }

  /** Takes over everything but images-dir, which is locked and holds files of builds. */
  reconfigure(config: Config): Promise<void> {
    const { log } = this.#parts;
    const folder = this.#config.builder.imagesDir;
    if (config.builder.imagesDir !== folder)
      log.warn({ folder }, "a change of images-dir takes effect at the next start");
    this.#config = config;
    // One after the other, so that the last configuration wins.
    const applied = this.#reloading.then(() => this.#builder.reconfigure(builderConfig(config)));
    this.#reloading = applied.catch(() => {});
    return applied;
  }

  /** Aborts builds and uploads in progress; the next start settles what they leave. */
  async close(graceMs: number): Promise<void> {
    await this.#reloading;
    await this.#builder.close(graceMs);
    for (const end of this.#ends.splice(0).reverse()) end();
  }

  /** Connects the builder with the log, the stack dump and the HTTP interface. */
  #attend({ machine, tree, front, ...parts }: BuilderParts): void {
    const log = parts.log.area("builder");
    const { clock } = machine;
    const { counters } = front;
    const live = () => [
      ...this.#builder.progress().map((one) => liveWork(one, clock.monotonic())),
      ...this.#builder.live(),
    ];
    this.#ends.push(machine.onDump(() => stackDump({ machine, tree, counters, log, live })));
    const report = () => {
      for (const one of this.#builder.progress()) log.info(progressFacts(one), `${one.kind} under way`);
      timer = clock.setTimer(REPORT_MS, report, { background: true });
    };
    let timer = clock.setTimer(REPORT_MS, report, { background: true });
    this.#ends.push(() => timer.cancel());
    front.add(this);
  }

  #workers(): readonly Gauge[] {
    const { builds, uploads } = this.#builder.workers;
    return [gaugeOf("workers", builds, "build"), gaugeOf("workers", uploads, "upload")];
  }
}

/** Whether the configuration gives a builder anything to do. */
export function wantsBuilder({ builder }: Config): boolean {
  return builder.imagesDir !== null && builder.images.size > 0;
}

function builderConfig({ providers, builder }: Config): BuilderConfig {
  return { providers, builder };
}

/** The progress of one build or upload, for the log. */
function progressFacts({ kind: _, etaMs, bytesPerSecond, elapsedMs, ...facts }: Progress): object {
  return {
    ...facts,
    seconds: Math.round(elapsedMs / 1000),
    MBps: Number((bytesPerSecond / 1e6).toFixed(1)),
    ...(etaMs === null ? {} : { etaSeconds: Math.round(etaMs / 1000) }),
  };
}

/** The same, for the stack dump. */
function liveWork({ kind, image, build, provider, phase, elapsedMs }: Progress, now: number): LiveWork {
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
