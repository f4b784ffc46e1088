import { isDeepStrictEqual } from "node:util";
import type { Driver, ProviderConfig } from "@nodeyard/driver";
import { launcherPoolId } from "@nodeyard/model";
import { hexId, messageOf, type Timer } from "@nodeyard/runtime";
import type { LocalPool, LocalProvider } from "../scheduler/index.ts";
import { poolKey } from "../view/index.ts";
import type { Context, OpenProvider, ServingPool } from "./context.ts";
import { InventoryKeeper } from "./inventory.ts";
import { LeakSweep } from "./leaks.ts";
import { learnFacts, openPause, openProvider, type ProviderFacts } from "./providers.ts";
import { poolComponent, type Registration } from "./registration.ts";

const FACTS_MS = 300_000;

/** Who this process is, for the records it writes. */
export interface Identity {
  readonly hostname: string;
  readonly fqdn: string;
  readonly version: string;
}

interface Served {
  readonly config: ProviderConfig;
  readonly stop: AbortController;
  open: OpenProvider | undefined;
  facts: ProviderFacts | undefined;
  inventory: InventoryKeeper | undefined;
  leaks: LeakSweep | undefined;
  timer: Timer | undefined;
  attempt: number;
}

/**
 * The providers that this process serves: opens them, learns their facts, registers their pools, and replaces only what a
 * new configuration changed. A provider that cannot be opened stays unregistered and is tried again with back-off.
 */
export class Serving {
  readonly pools = new Map<string, ServingPool>();
  readonly providers = new Map<string, OpenProvider>();
  readonly #served = new Map<string, Served>();
  readonly #context: Context;
  readonly #registration: Registration;
  readonly #identity: Identity;
  readonly #driverOf: (name: string) => Promise<Driver>;
  readonly #onChange: () => void;

  constructor(parts: {
    readonly context: Omit<Context, "pools" | "providers">;
    readonly registration: Registration;
    readonly identity: Identity;
    readonly driverOf: (name: string) => Promise<Driver>;
    /** Pools or facts changed: the scheduler's policy is to be made anew. */
    readonly onChange: () => void;
  }) {
    this.#context = { ...parts.context, pools: this.pools, providers: this.providers };
    this.#registration = parts.registration;
    this.#identity = parts.identity;
    this.#driverOf = parts.driverOf;
    this.#onChange = parts.onChange;
  }

  get context(): Context {
    return this.#context;
  }

  /** What the scheduler is to know of the providers that are open. */
  locals(): { readonly pools: readonly LocalPool[]; readonly providers: ReadonlyMap<string, LocalProvider> } {
    const pools: LocalPool[] = [];
    const providers = new Map<string, LocalProvider>();
    for (const { facts } of this.#served.values()) {
      if (facts === undefined) continue;
      providers.set(facts.local.name, facts.local);
      for (const pool of facts.pools) {
        const serving = this.pools.get(pool.key);
        if (serving !== undefined) pools.push({ ...pool, id: serving.id });
      }
    }
    return { pools, providers };
  }

  /** Makes what is served match `configs`; resolves when every provider was tried once. */
  async apply(configs: readonly ProviderConfig[]): Promise<void> {
    const wanted = new Map(configs.map((config) => [config.name, config]));
    const replaced = [...this.#served.values()].filter(
      ({ config }) => !isDeepStrictEqual(config, wanted.get(config.name)),
    );
    await Promise.all(replaced.map((served) => this.#retire(served)));
    const fresh = configs.filter((config) => !this.#served.has(config.name));
    await Promise.all(fresh.map((config) => this.#serve(config)));
    this.#onChange();
  }

  /** A record of the provider went or changed: its inventory may lack a slot now. */
  wakeInventory(provider: string | null): void {
    this.#served.get(provider ?? "")?.inventory?.wake();
  }

  async setPaused(key: string, paused: boolean): Promise<void> {
    await this.#registration.update(key, { paused });
  }

  /** Pools leave the registry, so that nobody waits for them. */
  async unregister(): Promise<void> {
    await Promise.all([...this.pools.keys()].map((key) => this.#registration.unregister(key)));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#served.values()].map((served) => this.#retire(served)));
  }

  async #serve(config: ProviderConfig): Promise<void> {
    const served: Served = {
      config,
      stop: new AbortController(),
      open: undefined,
      facts: undefined,
      inventory: undefined,
      leaks: undefined,
      timer: undefined,
      attempt: 0,
    };
    this.#served.set(config.name, served);
    await this.#tryOpen(served);
  }

  async #tryOpen(served: Served): Promise<void> {
    const { config, stop } = served;
    const context = this.#context;
    try {
      const driver = await this.#driverOf(config.driver);
      const open = await openProvider(driver, config, context, stop.signal);
      const facts = await learnFacts(open, context, stop.signal).catch(async (error) => {
        await open.provider.close();
        throw error;
      });
      if (stop.signal.aborted) return open.provider.close();
      served.open = open;
      served.facts = facts;
      await this.#register(served, open);
      this.#refreshLater(served);
    } catch (error) {
      if (stop.signal.aborted) return;
      const pause = openPause(context.random, served.attempt++);
      context.log.error(
        { provider: config.name, error: messageOf(error), retryMs: Math.round(pause) },
        "a provider could not be opened; the others go on",
      );
      served.timer = context.clock.setTimer(pause, () => void this.#tryOpen(served).then(this.#onChange), {
        background: true,
      });
    }
  }

  async #register(served: Served, open: OpenProvider): Promise<void> {
    const context = this.#context;
    const { config } = served;
    this.providers.set(config.name, open);
    for (const pool of served.facts?.pools ?? []) {
      const id = launcherPoolId({
        fqdn: this.#identity.fqdn,
        provider: config.name,
        pool: pool.name,
        hex: hexId(context.random),
      });
      context.ledgers.setLimit(
        pool.key,
        pool.launches ? (pool.limits.instances ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY,
      );
      this.pools.set(pool.key, { key: pool.key, id, name: pool.name, open });
      const facts = {
        ...this.#identity,
        id,
        name: pool.name,
        provider: config.name,
        labels: [...pool.labels].sort(),
        priority: pool.priority,
      };
      await this.#registration.register(pool.key, poolComponent(facts));
    }
    if (open.driver.capabilities.inventory) {
      served.inventory = new InventoryKeeper(context, open);
      served.inventory.start();
    }
    served.leaks = new LeakSweep(context, open);
    served.leaks.start();
  }

  /** Quotas change without telling; now and then, and after a quota error, they are asked again. */
  #refreshLater(served: Served): void {
    served.timer = this.#context.clock.setTimer(FACTS_MS, () => void this.#refresh(served), {
      background: true,
    });
  }

  async #refresh(served: Served): Promise<void> {
    const { open, stop } = served;
    if (open === undefined || stop.signal.aborted) return;
    try {
      served.facts = await learnFacts(open, this.#context, stop.signal);
      this.#onChange();
    } catch (error) {
      this.#context.log.warn(
        { provider: served.config.name, error: messageOf(error) },
        "a provider's quota could not be read; the last one stays in force",
      );
    }
    if (!stop.signal.aborted) this.#refreshLater(served);
  }

  async #retire(served: Served): Promise<void> {
    const { config, open } = served;
    served.stop.abort(new Error(`provider ${config.name} is stopped`));
    served.timer?.cancel();
    served.leaks?.close();
    this.#served.delete(config.name);
    this.providers.delete(config.name);
    for (const pool of config.pools) {
      const key = poolKey(config.name, pool.name);
      this.pools.delete(key);
      await this.#registration.unregister(key);
    }
    this.#onChange();
    await served.inventory?.close();
    await open?.provider.close();
  }
}
