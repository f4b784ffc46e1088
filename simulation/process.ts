import type { Driver } from "@nodeyard/driver";
import { createFakeDriver, type FakeCloud, fakeConfig } from "@nodeyard/driver-fake";
import { type Clock, type Random, seededRandom } from "@nodeyard/runtime";
import type { MemoryCluster, MemoryTree } from "@nodeyard/tree";
import { Counters, Launcher, type LauncherConfig, memoryJournal, memoryLog } from "nodeyard";
import { Life } from "./mortal.ts";

export interface Surroundings {
  readonly cluster: MemoryCluster;
  readonly cloud: FakeCloud;
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

  constructor(name: string, seed: number, { cluster, cloud, clock, config }: Surroundings) {
    this.name = name;
    const random: Random = seededRandom(seed);
    const mortal = this.#life.clock(clock);
    this.tree = cluster.connect({ name, sessionTimeoutMs: 4_000 });
    const guarded = this.#life.guard(cloud);
    const driver = createFakeDriver({ config: fakeConfig, cloudOf: () => guarded }) as unknown as Driver;
    void Launcher.start({
      tree: this.tree,
      clock: mortal,
      random,
      scan: { scan: () => Promise.reject(new Error("nothing to scan")) },
      log: this.log,
      journal: memoryJournal(100),
      counters: this.counters,
      identity: { hostname: name, fqdn: `${name}.example`, version: "0" },
      driverOf: async () => driver,
      config,
    }).then(
      (launcher) => {
        this.launcher = launcher;
      },
      (error: unknown) => {
        this.log.error({ error: String(error) }, "the launcher did not start");
      },
    );
  }

  get dead(): boolean {
    return this.#life.dead;
  }

  /** kill -9: nothing it holds settles again; the tree notices by the session's timeout. */
  crash(): void {
    this.#life.end();
    this.tree.crash();
  }
}
