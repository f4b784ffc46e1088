import type { Driver } from "@nodeyard/driver";
import { createFakeDriver, type FakeCloud, fakeConfig } from "@nodeyard/driver-fake";
import { staticDriver } from "@nodeyard/driver-static";
import { type Clock, type Random, seededRandom } from "@nodeyard/runtime";
import type { MemoryCluster, MemoryTree } from "@nodeyard/tree";
import { Counters, Launcher, type LauncherConfig, memoryJournal, memoryLog } from "nodeyard";
import { Life } from "./mortal.ts";

export interface Surroundings {
  readonly cluster: MemoryCluster;
  /** By provider. */
  readonly clouds: ReadonlyMap<string, FakeCloud>;
  readonly clock: Clock;
  readonly config: LauncherConfig;
}

/** One launcher process of the simulation, from its start to its death. */
export class LauncherProcess {
  readonly name: string;
  readonly tree: MemoryTree;
  readonly log = memoryLog();
  readonly counters = new Counters();
  readonly #life = new Life();
  launcher: Launcher | undefined;
  closing = false;
  #next: LauncherConfig | undefined;

  constructor(name: string, seed: number, { cluster, clouds, clock, config }: Surroundings) {
    this.name = name;
    const random: Random = seededRandom(seed);
    const mortal = this.#life.clock(clock);
    this.tree = cluster.connect({ name, sessionTimeoutMs: 4_000 });
    const guarded = new Map([...clouds].map(([provider, cloud]) => [provider, this.#life.guard(cloud)]));
    const fake = (provider: string) =>
      createFakeDriver({ config: fakeConfig, cloudOf: () => guarded.get(provider)! }) as unknown as Driver;
    const driver: Driver = {
      ...fake("cloud"),
      open: (config, context) => fake(config.name).open(config as never, context),
    };
    void Launcher.start({
      tree: this.tree,
      clock: mortal,
      random,
      scan: { scan: async ({ host }) => ({ address: host, family: 4, hostKeys: [] }) },
      log: this.log,
      journal: memoryJournal(100),
      counters: this.counters,
      identity: { hostname: name, fqdn: `${name}.example`, version: "0" },
      driverOf: async (name) => (name === "static" ? (staticDriver as unknown as Driver) : driver),
      config,
    }).then(
      (launcher) => {
        this.launcher = launcher;
        if (this.#next !== undefined) void launcher.reconfigure(this.#next);
      },
      (error: unknown) => {
        this.log.error({ error: String(error) }, "the launcher did not start");
      },
    );
  }

  get dead(): boolean {
    return this.#life.dead;
  }

  /** Also one that is still starting takes it, as soon as it has started. */
  reconfigure(config: LauncherConfig): void {
    this.#next = config;
    void this.launcher?.reconfigure(config);
  }

  /** Stops as an operator stops it; its session ends with it. */
  async close(): Promise<void> {
    this.closing = true;
    await this.launcher?.close(2_000);
    this.#life.end();
    await this.tree.close();
  }

  /** kill -9: nothing it holds settles again; the tree notices by the session's timeout. */
  crash(): void {
    this.#life.end();
    this.tree.crash();
  }
}
