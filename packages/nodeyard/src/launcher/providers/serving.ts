import { isDeepStrictEqual } from "node:util";
import type { Driver, ProviderConfig } from "@nodeyard/driver";
import { messageOf } from "@nodeyard/runtime";
import { closeQuietly, type Registration, settledWithin } from "../../coordination/index.ts";
import type { Context, OpenProvider, ServingPool, SlotSource } from "../context.ts";
import { isMetastatic, openMetastatic, withoutPools } from "../metastatic/index.ts";
import { FactsKeeper } from "./facts-keeper.ts";
import { InventoryKeeper } from "./inventory.ts";
import { LeakSweep } from "./leaks.ts";
import { LeftProviders } from "./left-providers.ts";
import { learnFacts, openPause, openProvider, type ProviderFacts } from "./providers.ts";
import { type Identity, registerPools } from "./register-pools.ts";
import { type ClosedProvider, closedOf, localsOf, newServed, type Served } from "./served.ts";

/** How long the work under way with a provider that was replaced or removed may go on, milliseconds. */
const RETIRE_MS = 3_600_000;

/**
 * The providers that this process serves: opens them, learns their facts, registers their pools, and replaces only what a
 * new configuration changed. A provider that cannot be opened stays unregistered and is tried again with back-off.
 */
export class Serving {
  readonly pools = new Map<string, ServingPool>();
  readonly providers = new Map<string, OpenProvider>();
  readonly #served = new Map<string, Served>();
  /** Left the configuration while nodes of theirs are in use: served no more, and cleared away as these come back. */
  readonly #draining = new Map<string, Served>();
  readonly #context: Context;
  readonly #registration: Registration;
  readonly #identity: Identity;
  readonly #driverOf: (name: string) => Promise<Driver>;
  readonly #onChange: () => void;
  readonly #onQuotaRefused: (provider: string) => void;
  readonly #facts: FactsKeeper;
  readonly #left: LeftProviders;
  #applying: Promise<void> = Promise.resolve();

  constructor(parts: {
    readonly context: Omit<Context, "pools" | "providers" | "quotaRefused">;
    readonly registration: Registration;
    readonly identity: Identity;
    readonly driverOf: (name: string) => Promise<Driver>;
    /** Pools or facts changed: the scheduler's policy is to be made anew. */
    readonly onChange: () => void;
    readonly onQuotaRefused: (provider: string) => void;
  }) {
    this.#context = {
      ...parts.context,
      pools: this.pools,
      providers: this.providers,
      quotaRefused: (provider) => this.quotaRefused(provider),
    };
    this.#registration = parts.registration;
    this.#identity = parts.identity;
    this.#driverOf = parts.driverOf;
    this.#onChange = parts.onChange;
    this.#onQuotaRefused = parts.onQuotaRefused;
    this.#facts = new FactsKeeper(this.#context, this.#onChange);
    const isKnown = (provider: string) => this.#served.has(provider) || this.#draining.has(provider);
    const drain = (provider: string) => this.#inTurn(() => this.#drainLeft(provider));
    this.#left = new LeftProviders(this.#context, isKnown, drain);
  }

  get context(): Context {
    return this.#context;
  }

  /** What the scheduler is to know of the providers that are open. */
  locals(): ReturnType<typeof localsOf> {
    return localsOf([...this.#served.values(), ...this.#draining.values()], this.pools);
  }

  /** Providers of which nothing is registered, because they could not be opened or are suspended. */
  closed(): readonly ClosedProvider[] {
    return closedOf(this.#served.values());
  }

  /** Makes what is served match `configs`; resolves when every provider was tried once. */
  apply(configs: readonly ProviderConfig[]): Promise<void> {
    return this.#inTurn(() => this.#apply(configs));
  }

  /** Looks for what others left behind. To be called on a complete view. */
  sweep(): Promise<void> {
    return this.#left.sweep();
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const next = this.#applying.then(work);
    this.#applying = next.catch(() => {});
    return next;
  }

  async #apply(configs: readonly ProviderConfig[]): Promise<void> {
    const wanted = new Map(configs.map((config) => [config.name, config]));
    const gone = [...this.#served.values()].filter(({ config }) => !wanted.has(config.name));
    await Promise.all(gone.map((served) => this.#drain(served)));
    const back = [...this.#draining.values()].filter(({ config }) => wanted.has(config.name));
    await Promise.all(back.map((served) => this.#retire(served)));
    const changed = configs.filter(
      (config) => !isDeepStrictEqual(config, this.#served.get(config.name)?.config),
    );
    await Promise.all(changed.map((config) => this.#serve(config, this.#served.get(config.name))));
    this.#onChange();
  }

  /** A record of the provider went or changed: its inventory may lack a slot now. */
  wakeInventory(provider: string | null): void {
    this.#served.get(provider ?? "")?.inventory?.wake();
  }

  /** The cloud said that the quota is used up: what we believe of it is wrong. */
  quotaRefused(provider: string): void {
    this.#onQuotaRefused(provider);
    this.askQuota(provider);
  }

  /** Learns the facts of a provider soon: what others leave of its quota may have changed. */
  askQuota(provider: string): void {
    const served = this.#served.get(provider);
    if (served !== undefined) this.#facts.ask(served);
  }

  setPaused(key: string, paused: boolean): void {
    const pool = this.pools.get(key);
    if (pool !== undefined) void this.#registration.update(pool.id, { paused });
  }

  /** Pools leave the registry, so that nobody waits for them. */
  async unregister(): Promise<void> {
    await Promise.all([...this.pools.values()].map(({ id }) => this.#registration.unregister(id)));
  }

  async close(): Promise<void> {
    const all = [...this.#served.values(), ...this.#draining.values()];
    await Promise.all(all.map((served) => this.#retire(served, 0)));
  }

  /** What it replaces goes last, so that nobody sees a moment without a pool and takes a request for declined by all. */
  async #serve(config: ProviderConfig, before: Served | undefined): Promise<void> {
    const served = newServed(config);
    this.#served.set(config.name, served);
    await this.#tryOpen(served);
    if (before !== undefined) await this.#retire(before);
  }

  async #tryOpen(served: Served): Promise<void> {
    const { config, stop } = served;
    const context = this.#context;
    try {
      const open = isMetastatic(config)
        ? await openMetastatic(context, config, (why) => void this.#suspend(served, why))
        : await openProvider(await this.#driverOf(config.driver), config, context, stop.signal);
      try {
        const facts = await learnFacts(open, context, stop.signal);
        stop.signal.throwIfAborted();
        served.failing = undefined;
        await this.#register(served, open, facts);
      } catch (error) {
        await this.#unregister(served);
        await closeQuietly(context, config.name, open.provider);
        throw error;
      }
      this.#onChange();
      this.#facts.later(served);
    } catch (error) {
      this.#tryLater(served, error);
    }
  }

  #tryLater(served: Served, error: unknown): void {
    const { config, stop } = served;
    if (stop.signal.aborted) return;
    const { clock, random, log } = this.#context;
    const pause = openPause(random, served.attempt++);
    this.#facts.failed(served, error, pause);
    log.error(
      { provider: config.name, error: messageOf(error), retryMs: Math.round(pause) },
      "a provider could not be opened; the others go on",
    );
    served.timer = clock.setTimer(pause, () => void this.#tryOpen(served), { background: true });
  }

  /** It must not be served now: its pools leave, and it is tried again as one that could not be opened. */
  async #suspend(served: Served, why: Error): Promise<void> {
    const { open, stop } = served;
    if (open === undefined || stop.signal.aborted || this.#served.get(served.config.name) !== served) return;
    this.#withdraw(served);
    served.open = undefined;
    served.facts = undefined;
    await this.#leave(served, open, RETIRE_MS);
    this.#tryLater(served, why);
  }

  /** Each pool is served from the moment that its component stands, and not before. */
  async #register(served: Served, open: OpenProvider, learnt: ProviderFacts): Promise<void> {
    const context = this.#context;
    const { config } = served;
    const pools = await registerPools(this.#registration, this.#identity, context, served, open, learnt);
    served.open = open;
    served.facts = learnt;
    context.ledgers.setProvider(config.name, learnt.local.quota);
    this.providers.set(config.name, open);
    for (const pool of pools) this.pools.set(pool.key, pool);
    if (open.driver.capabilities.inventory) {
      served.inventory = new InventoryKeeper(context, open);
      served.inventory.start();
    }
    served.leaks = new LeakSweep(context, open);
    served.leaks.start();
    open.slots?.serve();
  }

  /** It has left the configuration. Slots need nothing but the tree, so those in use are still taken back. */
  async #drain(served: Served): Promise<void> {
    const { config, open } = served;
    if (open?.slots === undefined) return this.#retire(served);
    this.#served.delete(config.name);
    this.#draining.set(config.name, served);
    this.#withdraw(served);
    await this.#unregister(served);
    await this.#giveBack(served, open.slots);
  }

  /** It left the configuration of a launcher that is no more. */
  async #drainLeft(provider: string): Promise<void> {
    if (this.#served.has(provider) || this.#draining.has(provider)) return;
    const served = newServed(withoutPools(provider));
    const open = await openMetastatic(this.#context, served.config, () => {});
    served.open = open;
    served.facts = await learnFacts(open, this.#context, served.stop.signal);
    this.#draining.set(provider, served);
    this.providers.set(provider, open);
    this.#onChange();
    open.slots.serve();
    await this.#giveBack(served, open.slots);
  }

  async #giveBack(served: Served, slots: SlotSource): Promise<void> {
    const { name } = served.config;
    const ended = () => {
      if (this.#draining.get(name) === served) void this.#retire(served);
    };
    const drains = await slots.drain(ended).catch((error: unknown) => {
      this.#context.log.warn(
        { provider: name, error: messageOf(error) },
        "could not see who else serves a provider",
      );
      return false;
    });
    if (!drains) ended();
  }

  /** Work under way goes on for `graceMs` at most before the provider is closed under it. */
  async #retire(served: Served, graceMs = RETIRE_MS): Promise<void> {
    const { config, open, stop } = served;
    stop.abort(new Error(`provider ${config.name} is stopped`));
    for (const map of [this.#served, this.#draining])
      if (map.get(config.name) === served) map.delete(config.name);
    this.#withdraw(served);
    await this.#leave(served, open, graceMs);
  }

  /** Nothing new is begun with it. */
  #withdraw({ config, open, timer, leaks }: Served): void {
    timer?.cancel();
    leaks?.close();
    const drains = this.#draining.get(config.name)?.open === open;
    if (this.providers.get(config.name) === open && !drains) this.providers.delete(config.name);
    for (const [key, pool] of this.pools) if (pool.open === open) this.pools.delete(key);
    this.#onChange();
  }

  async #leave(served: Served, open: OpenProvider | undefined, graceMs: number): Promise<void> {
    await this.#unregister(served);
    await served.inventory?.close();
    await open?.slots?.retire();
    if (open === undefined) return;
    const close = () => closeQuietly(this.#context, served.config.name, open.provider);
    if (open.work.size === 0 || graceMs === 0) return close();
    void settledWithin(this.#context.clock, graceMs, Promise.allSettled(open.work)).then(close);
  }

  async #unregister(served: Served): Promise<void> {
    await Promise.all(served.registered.splice(0).map((id) => this.#registration.unregister(id)));
  }
}
