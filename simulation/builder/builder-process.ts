import { Builder, type BuilderConfig, type Disk, type Running } from "@nodeyard/builder";
import type { Driver } from "@nodeyard/driver";
import { createFakeDriver, type FakeCloud, fakeConfig } from "@nodeyard/driver-fake";
import { type Clock, seededRandom } from "@nodeyard/runtime";
import { Counters, memoryLog } from "@nodeyard/telemetry";
import type { MemoryCluster, MemoryTree } from "@nodeyard/tree";
import { Traps } from "../effects.ts";
import { watchedCloud, watchedTree } from "../instruments.ts";
import { Life } from "../killable-process.ts";
import { Trap } from "../trap.ts";
import type { SimulatedDisk } from "./simulated-disk.ts";

export interface BuilderEnvironment {
  readonly cluster: MemoryCluster;
  readonly clouds: ReadonlyMap<string, FakeCloud>;
  readonly clock: Clock;
  readonly config: BuilderConfig;
  readonly disk: SimulatedDisk;
}

const SESSION_MS = 4_000;

/** One builder process of the simulation, from its start to its death. Its disk and the builds that run on it outlive it. */
export class BuilderProcess {
  readonly name: string;
  readonly tree: MemoryTree;
  readonly log = memoryLog();
  readonly counters = new Counters();
  readonly life: Life;
  /** Effects at which it dies. */
  readonly traps = new Traps(() => this.crash());
  readonly disk: SimulatedDisk;
  builder: Builder | undefined;
  closing = false;
  #next: BuilderConfig | undefined;
  readonly #killed = Promise.withResolvers<void>();

  constructor(name: string, hostname: string, seed: number, environment: BuilderEnvironment) {
    const { cluster, clouds, clock, config, disk } = environment;
    this.name = name;
    this.disk = disk;
    this.life = new Life(clock);
    const processClock = this.life.clock();
    this.tree = cluster.connect({ name, sessionTimeoutMs: SESSION_MS, clock: processClock });
    const instruments = {
      traps: this.traps,
      // Builders' sessions end often enough without it.
      trap: new Trap(() => {}),
      expire: () => this.tree.expire(),
      // A builder has no ledgers.
      onTooLarge: () => {},
      clock,
      random: seededRandom(seed + 1),
    };
    const driver = createFakeDriver({
      config: fakeConfig,
      cloudOf: ({ cloud }): FakeCloud =>
        watchedCloud(this.life.guard(clouds.get(cloud)!), instruments, () => {}),
    }) as unknown as Driver;
    void Builder.start({
      tree: watchedTree(this.tree, instruments),
      clock: processClock,
      random: seededRandom(seed),
      scan: { scan: async ({ host }) => ({ address: host, family: 4, hostKeys: [] }) },
      log: this.log,
      counters: this.counters,
      disk: this.#mortalDisk(disk),
      identity: { hostname, fqdn: `${hostname}.example`, version: "0" },
      driverOf: async () => driver,
      config,
    }).then(
      (builder) => {
        if (this.dead) return;
        this.builder = builder;
        if (this.#next !== undefined) void builder.reconfigure(this.#next);
      },
      (error: unknown) => {
        this.log.error({ error: String(error) }, "the builder did not start");
      },
    );
  }

  get dead(): boolean {
    return this.life.dead;
  }

  /** Whether a fault can strike it now. */
  get awake(): boolean {
    return !this.dead && !this.closing && !this.life.frozen;
  }

  reconfigure(config: BuilderConfig): void {
    this.#next = config;
    void this.builder?.reconfigure(config);
  }

  /** Stops in order. */
  async close(): Promise<void> {
    this.closing = true;
    // What a killed process awaits never settles.
    await Promise.race([this.#close(), this.#killed.promise]);
  }

  async #close(): Promise<void> {
    await this.builder?.close(2_000);
    this.life.end();
    await this.tree.close();
  }

  /** kill -9: its builds continue without it. */
  crash(): void {
    this.#killed.resolve();
    this.life.end();
    this.tree.crash();
  }

  freeze(): void {
    this.life.freeze();
    this.tree.freeze();
  }

  thaw(slept: boolean): void {
    this.life.thaw(slept);
    this.tree.thaw();
  }

  /** A dead or suspended process does not see the end of a command. */
  #mortalDisk(disk: SimulatedDisk): Disk {
    const own = this.life.guard(disk);
    const start: Disk["start"] = async (command, intent): Promise<Running> => {
      const running = await own.start(command, intent);
      const { ended } = this.life.guard({ ended: () => running.ended });
      return { ended: ended(), kill: () => running.kill() };
    };
    return new Proxy(own, {
      get: (target, name) => (name === "start" ? start : Reflect.get(target, name, target)),
    });
  }
}
