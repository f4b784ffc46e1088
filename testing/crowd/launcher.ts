import type { Driver, ProviderConfig, Wire } from "@nodeyard/driver";
import { Launcher } from "@nodeyard/launcher";
import { type Clock, seededRandom } from "@nodeyard/runtime";
import { Counters, memoryJournal, memoryLog } from "@nodeyard/telemetry";
import type { MemoryCluster, MemoryTree } from "@nodeyard/tree";
import { Life } from "../../simulation/killable-process.ts";

const SESSION_MS = 8_000;

/** Where launchers run, and with which driver: one that a process has alone, at connections that pass through `through`. */
export interface LauncherPlace {
  readonly clock: Clock;
  readonly cluster: MemoryCluster;
  readonly config: ProviderConfig;
  driver(through: (wire: Wire) => Wire): Driver;
}

/** A launcher in virtual time that can be killed: what it has sent still takes effect, and no answer reaches it. */
export class CrowdLauncher {
  readonly log = memoryLog();
  readonly #life: Life;
  readonly #tree: MemoryTree;
  readonly #launcher: Promise<Launcher>;

  constructor(name: string, seed: number, { clock, cluster, config, driver }: LauncherPlace) {
    this.#life = new Life(clock);
    const own = this.#life.clock();
    this.#tree = cluster.connect({ name, sessionTimeoutMs: SESSION_MS, clock: own });
    const loaded = driver((wire) => this.#life.guard(wire));
    this.#launcher = Launcher.start({
      ...{ tree: this.#tree, clock: own, random: seededRandom(seed), log: this.log },
      ...{ journal: memoryJournal(100), counters: new Counters() },
      scan: { scan: async ({ host }) => ({ address: host, family: 4, hostKeys: [] }) },
      identity: { hostname: name, fqdn: `${name}.example`, version: "0" },
      driverOf: async () => loaded,
      config: {
        ...{ providers: [config], labels: new Map(), tenantLimits: new Map() },
        maxHoldAgeMs: Number.POSITIVE_INFINITY,
      },
    });
    this.#launcher.catch(() => {});
  }

  /** Resolves when it runs; rejects when it does not start. */
  async started(): Promise<void> {
    await this.#launcher;
  }

  /** kill -9. */
  kill(): void {
    this.#life.end();
    this.#tree.crash();
  }

  async close(): Promise<void> {
    await (await this.#launcher).close(2_000);
    this.#life.end();
    await this.#tree.close();
  }
}
