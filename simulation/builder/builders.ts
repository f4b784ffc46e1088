import type { BuilderConfig } from "@nodeyard/builder";
import { deleteBuild, deleteUpload, requestBuild } from "@nodeyard/operations";
import { NodeyardError, type Random, sleep } from "@nodeyard/runtime";
import type { MemoryTree } from "@nodeyard/tree";
import { BUILDER_POINTS, type CrashPoint, pointName } from "../effects.ts";
import type { Fault } from "../faults.ts";
import { between, pick } from "../streams.ts";
import { type BuilderEnvironment, BuilderProcess } from "./builder-process.ts";
import type { ImageCheck } from "./image-check.ts";
import { SimulatedDisk } from "./simulated-disk.ts";

export interface BuildersOptions extends Omit<BuilderEnvironment, "disk" | "config"> {
  readonly seed: number;
  readonly random: Random;
  /** Random numbers of the operator who requests builds and deletes them. */
  readonly tree: MemoryTree;
  readonly image: string;
  readonly check: ImageCheck;
  /** `lasting`: the final configuration, with which no build is due by its age. */
  readonly config: (lasting: boolean) => BuilderConfig;
  readonly count: (fault: Fault) => void;
  readonly countCrash: (point: string) => void;
  readonly failed: (error: unknown) => void;
}

const HOSTS = 2;
/** Between two faults of images or builders, milliseconds. */
const PAUSE_MS = [2_000, 12_000] as const;
/** How long all builders are away, milliseconds. */
const GONE_MS = [4_000, 25_000] as const;
const FROZEN_MS = [1_000, 12_000] as const;
/** A trap that no builder reaches is removed after this time, milliseconds. */
const TRAP_MS = 30_000;

/** Two builders that share one tree, each with a disk of its own, and their faults. */
export class Builders {
  readonly processes: BuilderProcess[] = [];
  readonly disks: readonly SimulatedDisk[];
  readonly #options: BuildersOptions;
  #started = 0;
  #point: number;
  #stopping = false;
  #gone = false;

  constructor(options: BuildersOptions) {
    this.#options = options;
    this.#point = options.seed * 5;
    const { clock, random, count } = options;
    this.disks = Array.from(
      { length: HOSTS },
      () => new SimulatedDisk(clock, random, () => count("build fails")),
    );
  }

  get alive(): readonly BuilderProcess[] {
    return this.processes.filter(({ dead }) => !dead);
  }

  /** Whether no builder builds, uploads or deletes anything. */
  get quiet(): boolean {
    const { check } = this.#options;
    return (
      !this.#gone &&
      check.busy === 0 &&
      this.alive.every(({ awake, builder }) => awake && builder?.progress().length === 0)
    );
  }

  async run(): Promise<void> {
    const { clock, random } = this.#options;
    for (let host = 0; host < HOSTS; host++) this.#start(host);
    while (!this.#stopping) {
      await sleep(clock, between(random, ...PAUSE_MS));
      if (!this.#stopping) await this.#happen();
    }
  }

  /** From now on there are no faults; missing images are built. */
  stop(): void {
    const { tree, clock, random, image, config, failed } = this.#options;
    this.#stopping = true;
    for (const each of this.alive) {
      each.traps.clearAll();
      each.tree.reconnect();
      each.reconfigure(config(true));
    }
    // A request retries a build that failed a moment ago at once.
    requestBuild({ tree, clock, random }, image).catch(failed);
  }

  async #happen(): Promise<void> {
    const { tree, clock, random, image, count, failed, check } = this.#options;
    const handles = { tree, clock, random };
    const chance = random.float();
    try {
      if (chance < 0.35) await requestBuild(handles, image);
      else if (chance < 0.6) this.#trap();
      else if (chance < 0.68) await this.#deleteUpload(handles, check.uploads);
      else if (chance < 0.74) await this.#deleteBuild(handles, check.builds);
      else if (chance < 0.94) this.#disturb();
      else if (!this.#gone) void this.#leave().catch(failed);
    } catch (error) {
      // "The build is running or gone" is an answer, no error.
      if (!(error instanceof NodeyardError)) throw error;
    }
    if (chance >= 0.94) count("builder gone");
  }

  #disturb(): void {
    const { random, count, clock } = this.#options;
    const awake = this.processes.filter((each) => each.awake);
    if (awake.length === 0) return;
    const victim = pick(random, awake);
    const chance = random.float();
    if (chance < 0.35) {
      count("builder's session ends");
      victim.tree.expire();
    } else if (chance < 0.6) {
      count("builder stands still");
      victim.freeze();
      const slept = random.float() < 0.5;
      clock.setTimer(between(random, ...FROZEN_MS), () => victim.thaw(slept));
    } else {
      count("builder is cut off");
      victim.tree.disconnect(true);
      clock.setTimer(between(random, ...FROZEN_MS), () => victim.dead || victim.tree.reconnect());
    }
  }

  /** All builders stop, in order or not, and start again later. */
  async #leave(): Promise<void> {
    const { clock, random } = this.#options;
    this.#gone = true;
    await Promise.all(
      this.alive.map(async (each) => {
        if (random.float() < 0.5) each.crash();
        else if (each.awake) await each.close();
      }),
    );
    await sleep(clock, between(random, ...GONE_MS));
    this.#gone = false;
    for (const [host, disk] of this.disks.entries())
      if (!this.alive.some((each) => each.disk === disk)) this.#start(host);
  }

  #trap(): void {
    const { clock, countCrash } = this.#options;
    const point: CrashPoint = { ...BUILDER_POINTS[this.#point++ % BUILDER_POINTS.length]! };
    const armed = this.alive;
    const disarm = () => {
      for (const each of armed) each.traps.clear(point);
    };
    for (const each of armed)
      each.traps.set(point, () => {
        disarm();
        countCrash(pointName(point));
        if (!this.#gone) this.#start(this.disks.indexOf(each.disk));
      });
    clock.setTimer(TRAP_MS, disarm);
  }

  #start(host: number): void {
    const { seed, config, ...environment } = this.#options;
    const number = this.#started++;
    const process = new BuilderProcess(`builder-${number}`, `builder-host-${host}`, seed * 1_000 + number, {
      ...environment,
      disk: this.disks[host]!,
      config: config(this.#stopping),
    });
    this.processes.push(process);
  }

  async #deleteUpload(
    handles: Parameters<typeof deleteUpload>[0],
    uploads: ImageCheck["uploads"],
  ): Promise<void> {
    const path = pickOf(handles.random, [...uploads.keys()]);
    const [, , , image, , build, , provider, , upload] = path?.split("/") ?? [];
    if (upload !== undefined)
      await deleteUpload(handles, { image: image!, build: build!, provider: provider!, upload });
  }

  async #deleteBuild(
    handles: Parameters<typeof deleteBuild>[0],
    builds: ImageCheck["builds"],
  ): Promise<void> {
    const path = pickOf(handles.random, [...builds.keys()]);
    const [, , , image, , build] = path?.split("/") ?? [];
    if (build !== undefined) await deleteBuild(handles, image!, build);
  }
}

function pickOf<T>(random: Random, from: readonly T[]): T | undefined {
  return from.length === 0 ? undefined : pick(random, from);
}
