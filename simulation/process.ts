import { type Driver, DriverError, type Provider } from "@nodeyard/driver";
import { createFakeDriver, type FakeCloud, fakeConfig } from "@nodeyard/driver-fake";
import { metastaticDriver } from "@nodeyard/driver-metastatic";
import { staticDriver } from "@nodeyard/driver-static";
import { Launcher, type LauncherConfig } from "@nodeyard/launcher";
import { type Clock, type Random, seededRandom, sleep } from "@nodeyard/runtime";
import { Counters, memoryJournal, memoryLog } from "@nodeyard/telemetry";
import type { MemoryCluster, MemoryTree } from "@nodeyard/tree";
import { isBadSum } from "./builder/index.ts";
import type { Effect } from "./checks/index.ts";
import type { Caller, CloudObserver } from "./cloud-observer.ts";
import { Traps } from "./effects.ts";
import { watchedCloud, watchedTree } from "./instruments.ts";
import { Life } from "./killable-process.ts";
import type { Trap } from "./trap.ts";

export interface ProcessEnvironment {
  readonly cluster: MemoryCluster;
  /** By provider. */
  readonly clouds: ReadonlyMap<string, FakeCloud>;
  /** By provider. */
  readonly observers: ReadonlyMap<string, CloudObserver>;
  readonly clock: Clock;
  readonly trap: Trap;
  readonly config: LauncherConfig;
  /** A cloud refused a call, with the status of its answer. */
  readonly onCloudError: (status: number) => void;
  readonly onTooLarge: () => void;
  /** A node is checked, or was found good; absent: nobody asks. */
  readonly onCheck?: (effect: Effect) => void;
}

/** Of checks: how many find a node good, and how many never end. */
const GOOD = 0.75;
const HANGS = 0.05;
/** How long a check takes at most, milliseconds. */
const CHECK_MS = 4_000;

const SESSION_MS = 4_000;
/** A wall clock that is ahead of the monotonic one by more than this counts as the session's end (rule 1), milliseconds. */
const JUMP_MS = 2_000;

/** Machines of images that do not boot are created like others, and never answer. */
function bootless(provider: Provider, cloud: FakeCloud): Provider {
  const create = provider.create.bind(provider);
  provider.create = async function* (order, context) {
    const machine = yield* create(order, context);
    const image = cloud.inspectImages().find(({ id }) => id === order.imageExternalId);
    if (image !== undefined && isBadSum(image.sha256))
      throw new DriverError("timeout", "the machine does not answer");
    return machine;
  };
  return provider;
}

/** One launcher process of the simulation, from its start to its death. */
export class LauncherProcess {
  readonly name: string;
  readonly tree: MemoryTree;
  readonly log = memoryLog();
  readonly counters = new Counters();
  readonly life: Life;
  /** Effects at which it dies. */
  readonly traps = new Traps(() => this.crash());
  launcher: Launcher | undefined;
  closing = false;
  #next: LauncherConfig | undefined;
  #frozenAt: number | undefined;
  /** Until when the process trusted its session when it fell asleep: no reply came since. */
  #distrusted: number | undefined;
  readonly #clock: Clock;

  constructor(name: string, seed: number, environment: ProcessEnvironment) {
    const { cluster, clouds, observers, clock, trap, config, onCloudError, onTooLarge } = environment;
    this.name = name;
    this.#clock = clock;
    const random: Random = seededRandom(seed);
    const checks = seededRandom(seed + 2);
    this.life = new Life(clock);
    const processClock = this.life.clock();
    this.tree = cluster.connect({ name, sessionTimeoutMs: SESSION_MS, clock: processClock });
    const expire = () => {
      if (this.awake) this.tree.expire();
    };
    const instruments = {
      traps: this.traps,
      clock,
      random: seededRandom(seed + 1),
      trap,
      onTooLarge,
      expire,
    };
    const guarded = new Map(
      [...clouds].map(([provider, cloud]) => {
        const seen = observers.get(provider)?.as(() => this.#caller(), cloud);
        const own = this.life.guard(seen ?? cloud);
        return [provider, watchedCloud(own, instruments, onCloudError)];
      }),
    );
    const fake = (provider: string) =>
      createFakeDriver({
        config: fakeConfig,
        cloudOf: (): FakeCloud => guarded.get(provider)!,
      }) as unknown as Driver;
    const driver: Driver = {
      ...fake("cloud"),
      open: async (config, context) =>
        bootless(await fake(config.name).open(config as never, context), clouds.get(config.name)!),
    };
    const drivers = new Map(
      [staticDriver, metastaticDriver].map((each) => [each.name, each as unknown as Driver]),
    );
    void Launcher.start({
      tree: watchedTree(this.tree, instruments),
      clock: processClock,
      random,
      check: async ({ node }, signal) => {
        const [length, result] = [checks.float() * CHECK_MS, checks.float()];
        const of = { provider: node.provider ?? "", node: node.id, machine: undefined, ours: true };
        const tell = (moment: Effect["moment"]) => {
          const { name: client, session, trusted } = this.#caller();
          environment.onCheck?.({ kind: "check", moment, ...of, client, session, trusted });
        };
        tell("sent");
        await sleep(processClock, result > 1 - HANGS ? Number.MAX_SAFE_INTEGER : length, signal);
        if (result > GOOD) return "the node is not good";
        tell("done");
        return undefined;
      },
      scan: { scan: async ({ host }) => ({ address: host, family: 4, hostKeys: [] }) },
      log: this.log,
      journal: memoryJournal(100),
      counters: this.counters,
      identity: { hostname: name, fqdn: `${name}.example`, version: "0" },
      driverOf: async (name) => drivers.get(name) ?? driver,
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
    return this.life.dead;
  }

  /** Whether a fault can strike it now. */
  get awake(): boolean {
    return !this.dead && !this.closing && !this.life.frozen;
  }

  /** A launcher that is still starting applies it when it has started. */
  reconfigure(config: LauncherConfig): void {
    this.#next = config;
    void this.launcher?.reconfigure(config);
  }

  /** Stops in order; its session ends with it. */
  async close(): Promise<void> {
    this.closing = true;
    await this.launcher?.close(2_000);
    this.life.end();
    await this.tree.close();
  }

  /** kill -9: nothing that it holds settles again; the tree notices by the session's timeout. */
  crash(): void {
    this.life.end();
    this.tree.crash();
  }

  freeze(): void {
    this.#frozenAt = this.#clock.monotonic();
    this.life.freeze();
    this.tree.freeze();
  }

  thaw(slept: boolean): void {
    const sleptMs = slept ? this.#clock.monotonic() - (this.#frozenAt ?? Number.POSITIVE_INFINITY) : 0;
    if (sleptMs > JUMP_MS) this.#distrusted = this.tree.session().trustedUntil;
    this.life.thaw(slept);
    this.tree.thaw();
  }

  /** As the checks count it, independent of the launcher's own view. */
  #caller(): Caller {
    const { id, state, trustedUntil } = this.tree.session();
    const inTime = this.life.clock().monotonic() < trustedUntil && trustedUntil !== this.#distrusted;
    return { name: this.name, session: id, trusted: state === "connected" && inTime };
  }
}
