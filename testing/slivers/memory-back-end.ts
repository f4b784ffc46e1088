import {
  type BackEnd,
  type Cache,
  type CacheChange,
  type CacheVolume,
  type Configured,
  cacheId,
  cacheReportOf,
  committed,
  ImageError,
  type ImageTrials,
  type MadeOf,
  type Observed,
  refusalOf,
  type SliverConfig,
  type SliverRef,
  type StepKind,
  startOf,
} from "@nodeyard/sliver";

/** What processes of a sliver use. */
export type Uses = Pick<Observed, "usage" | "memoryKills">;

interface Made {
  config: SliverConfig;
  phase: Observed["phase"];
  applied?: SliverConfig;
  /** Its processes are suspended. */
  suspended?: boolean;
  /** Network traffic that `inspect` reports. */
  sent?: Observed["sent"];
  memoryKills?: number;
  usage?: Observed["usage"];
  readonly madeOf?: MadeOf | undefined;
  volumes: readonly CacheVolume[];
  starts: number;
}

/** How long each start takes, for trials of versions. */
const BOOT_MS = 1_000;

/** Called before a step has its effect. It may wait, throw, or record the call. */
export type Disturb = (step: StepKind, ref: SliverRef, signal: AbortSignal) => Promise<void> | void;

/** A back end whose machine is a map. It outlives managers, as a real machine does. `disturb` makes steps slow or lets them fail. */
export class MemoryBackEnd implements BackEnd {
  readonly name = "memory";
  /** Slivers on the machine, by index. */
  readonly made = new Map<number, Made>();
  /** Every step that took effect, in order. */
  readonly log: string[] = [];
  disturb: Disturb = () => undefined;
  /** What `configure` reports as not enforced. */
  unenforced: readonly string[] = [];
  /** What `remains` reports of removed slivers. */
  stays: readonly string[] = [];
  /** Incarnations whose image is a former one. */
  readonly outdated = new Set<number>();
  /** How often two steps of one incarnation ran at the same time, which is a defect of the executor. */
  overlaps = 0;
  /** Set: new versions of images are tried; tests offer them. */
  versions: ImageTrials | undefined;
  readonly #within = new Set<number>();
  readonly #uid: number | undefined;
  /** Set: each sliver's SSH server has a port of the machine, counted from this one. */
  firstPort: number | undefined;

  /** `uid`: the user of every account, for tests that do not run as root and cannot change owners of files. */
  constructor(uid?: number) {
    this.#uid = uid;
  }

  /** Another back end on the same machine. */
  restart(): MemoryBackEnd {
    return Object.assign(new MemoryBackEnd(this.#uid), { made: this.made, kept: this.kept });
  }

  account(index: number): { user: string; uid: number; address: string; published?: number } {
    const user = `ny-${String(index).padStart(2, "0")}`;
    const address = `127.213.${index >> 8}.${index & 255}`;
    const published = this.firstPort === undefined ? {} : { published: this.firstPort + index };
    return { user, uid: this.#uid ?? 60_000 + index, address, ...published };
  }

  remains(): readonly string[] {
    return this.stays;
  }

  /** What `counting` reports. */
  miscounts = false;

  counting(): boolean {
    return this.miscounts;
  }

  trials(): ReturnType<ImageTrials["report"]> {
    return this.versions?.report() ?? [];
  }

  /** Seconds since the Unix epoch, for caches. */
  now = 0;

  /** Caches by id. Nothing is in them. */
  readonly kept = new Map<string, Cache>();

  caches(): ReturnType<typeof cacheReportOf>[] {
    return [...this.kept].map(([id, cache]) => cacheReportOf(id, cache));
  }

  async changeCache(id: string, change: CacheChange): Promise<void> {
    const cache = this.kept.get(id);
    if (cache === undefined) throw new ImageError(`there is no cache ${id}`);
    if (change === "delete") this.kept.delete(id);
    else this.kept.set(id, { ...cache, pinned: change === "pin" });
  }

  async inspect(): Promise<readonly Observed[]> {
    return [...this.made].map(
      ([index, { config, phase, applied, sent, memoryKills, usage, madeOf, volumes }]) => ({
        index,
        incarnation: config.incarnation,
        name: config.name,
        generation: config.generation,
        phase,
        ...(config.devices === undefined ? {} : { devices: config.devices }),
        ...(volumes.length > 0 ? { volumes } : {}),
        ...(madeOf?.tried === true ? { triedVersion: madeOf.digest } : {}),
        ...(sent === undefined ? {} : { sent }),
        ...(memoryKills === undefined ? {} : { memoryKills }),
        ...(usage === undefined ? {} : { usage }),
        ...(this.outdated.has(config.incarnation) ? { outdated: true } : {}),
        ...(applied === undefined
          ? {}
          : { applied: { digest: applied.digest, effective: applied.effective } }),
      }),
    );
  }

  create(config: SliverConfig, signal: AbortSignal): Promise<void> {
    return this.#step("create", config, signal, () => {
      const made = this.made.get(config.index);
      if (made !== undefined && made.config.incarnation !== config.incarnation)
        throw new Error(`index ${config.index} still holds incarnation ${made.config.incarnation}`);
      const madeOf = this.versions?.choose(config.image ?? "default", config.incarnation);
      if (made !== undefined) return;
      const volumes = (config.volumes ?? []).map((one) => {
        const cache = this.kept.get(cacheId(one));
        if (cache !== undefined)
          this.kept.set(cacheId(one), { ...cache, used: this.now, hits: cache.hits + 1 });
        return { ...one, ...startOf(one, cache, this.now) };
      });
      this.made.set(config.index, { config, phase: "created", madeOf, volumes, starts: 0 });
    });
  }

  configure(config: SliverConfig, signal: AbortSignal): Promise<Configured> {
    return this.#step("configure", config, signal, () => {
      const made = this.#of(config);
      made.config = config;
      made.applied = config;
      const says = (name: string) => config.volumes?.find((one) => one.name === name)?.commit ?? "never";
      made.volumes = made.volumes.map((one) => ({ ...one, commit: says(one.name) }));
      made.suspended = made.phase === "running" && config.held === true;
      return { unenforced: this.unenforced };
    });
  }

  async start(config: SliverConfig, signal: AbortSignal): Promise<void> {
    const made = this.#of(config);
    const madeOf = made.phase === "created" ? made.madeOf : undefined;
    const count = (ms?: number) =>
      madeOf !== undefined && this.versions?.count(madeOf, config.incarnation, ms) === true;
    try {
      await this.#step("start", config, signal, () => {
        if (made.phase !== "running") made.starts += 1;
        made.phase = "running";
      });
    } catch (error) {
      if (count()) made.phase = "broken";
      throw error;
    }
    count(BOOT_MS);
  }

  stop(ref: SliverRef, signal: AbortSignal): Promise<void> {
    return this.#step("stop", ref, signal, () => {
      this.#of(ref).phase = "stopped";
    });
  }

  destroy(ref: SliverRef, signal: AbortSignal): Promise<void> {
    return this.#step("destroy", ref, signal, () => {
      const made = this.made.get(ref.index);
      if (made?.config.incarnation !== ref.incarnation) return;
      for (const { began = this.now, base, ...volume } of made.volumes) {
        const { starts, memoryKills = 0, usage } = made;
        if (refusalOf({ ...volume, starts, memoryKills }, 0) !== undefined) continue;
        const left = { version: `${ref.incarnation}`, bytes: usage?.disk ?? 1, by: made.config.name };
        this.kept.set(
          cacheId(volume),
          committed(this.kept.get(cacheId(volume)), volume, { base, began }, left, this.now),
        );
      }
      this.made.delete(ref.index);
    });
  }

  /** The steps of the sliver: there are no processes that write. */
  async console({ index, incarnation }: SliverRef): Promise<string | null> {
    if (this.made.get(index)?.config.incarnation !== incarnation) return null;
    const own = this.log.filter((line) => line.endsWith(` ${index}:${incarnation}`));
    return own.map((line) => `${line}\n`).join("");
  }

  /** What an image was made of, by its name. */
  readonly snapshots = new Map<string, SliverConfig>();

  async snapshot(ref: SliverRef, image: string): Promise<void> {
    this.snapshots.set(image, this.#of(ref).config);
  }

  async forgetSnapshot(image: string): Promise<void> {
    if (!this.snapshots.delete(image)) throw new ImageError(`there is no snapshot ${image}`);
  }

  #of(ref: SliverRef): Made {
    const made = this.made.get(ref.index);
    if (made?.config.incarnation !== ref.incarnation)
      throw new Error(`there is no incarnation ${ref.incarnation} at index ${ref.index}`);
    return made;
  }

  async #step<T>(kind: StepKind, ref: SliverRef, signal: AbortSignal, effect: () => T): Promise<T> {
    if (this.#within.has(ref.incarnation)) this.overlaps += 1;
    this.#within.add(ref.incarnation);
    try {
      await this.disturb(kind, { index: ref.index, incarnation: ref.incarnation }, signal);
      signal.throwIfAborted();
      const result = effect();
      this.log.push(`${kind} ${ref.index}:${ref.incarnation}`);
      return result;
    } finally {
      this.#within.delete(ref.incarnation);
    }
  }
}
