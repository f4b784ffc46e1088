import { isDeepStrictEqual } from "node:util";
import { Controller, closeQuietly, openingError } from "@nodeyard/coordination";
import type { Driver, Price, ProviderConfig, SlotSettings } from "@nodeyard/driver";
import type { NodeRecord } from "@nodeyard/model";
import { backoff, messageOf } from "@nodeyard/runtime";
import { isElsewhere, type Policy } from "@nodeyard/scheduler";
import type { ViewEvent } from "@nodeyard/view";
import { noteUse } from "../event-lines.ts";
import type { OpenProvider, ServingPool } from "../handles.ts";
import { ASK_MS, FAILING_MS, factsPause, refreshFacts } from "./facts.ts";
import { isServed, refuseForeign } from "./foreign.ts";
import {
  elsewhereIn,
  FormerProviders,
  nodesOf,
  reportElsewhere,
  type Stranded,
  takeOutFree,
} from "./former.ts";
import { learnFacts, type ProviderFacts } from "./learn-facts.ts";
import { LeftProviders, leftNodes, METASTATIC, withoutPools } from "./left-providers.ts";
import { openProvider, type ProviderHandles } from "./providers.ts";
import { launcherFacts } from "./report.ts";
import {
  begin,
  beginBackings,
  type ClosedProvider,
  closedCode,
  closedOf,
  type Identity,
  isExclusive,
  leave,
  localsOf,
  newServed,
  openingOf,
  RETIRE_MS,
  type Registry,
  registerPools,
  type Served,
  unregisterPools,
} from "./served.ts";
import { becameFree } from "./slots.ts";

/**
 * The providers that this process serves: opens them, reads their facts, registers their pools, and replaces only those that a new
 * configuration changed. A provider that cannot be opened stays unregistered and is tried again with back-off. A changed provider is
 * served by its former configuration until the new one could be opened.
 */
export class Serving {
  /** Pools that requests may be accepted for, by key. Changed only here; the other parts hold this same map. */
  readonly pools = new Map<string, ServingPool>();
  /** Open providers by name: those of the pools, and drained ones, whose nodes are still deleted. */
  readonly providers = new Map<string, OpenProvider>();
  /** By name, one for each configured provider, open or not. */
  readonly #served = new Map<string, Served>();
  /** Providers that replace an open one as soon as their own pools are registered. */
  readonly #replacements = new Map<string, Served>();
  /** Left the configuration while there are nodes of theirs: served no more, and cleared away as these come back. */
  readonly #draining = new Map<string, Served>();
  readonly #former: FormerProviders;
  readonly #context: ProviderHandles;
  readonly #registration: Registry;
  readonly #acts: boolean;
  readonly #identity: Identity;
  readonly #driverOf: (name: string) => Promise<Driver>;
  readonly #tellScheduler: (locals: ReturnType<Serving["locals"]>) => void;
  readonly #left: LeftProviders;
  /** Changes of the configuration and drains follow each other, so that none meets a provider that another is moving between the maps. */
  #applying: Promise<unknown> = Promise.resolve();
  #stopped = false;

  constructor(parts: {
    readonly context: ProviderHandles;
    readonly registration: Registry;
    readonly identity: Identity;
    /** False: providers are opened and asked for their facts, and nothing is done for them. */
    readonly acts?: boolean;
    readonly driverOf: (name: string) => Promise<Driver>;
    /** Called when pools or facts have changed, with what the scheduler is to know of them now. */
    readonly onChange: (locals: ReturnType<Serving["locals"]>) => void;
  }) {
    this.#context = parts.context;
    this.#registration = parts.registration;
    this.#acts = parts.acts ?? true;
    this.#identity = parts.identity;
    this.#driverOf = parts.driverOf;
    this.#tellScheduler = parts.onChange;
    parts.context.view.follow((event) => this.#onEvent(event));
    const isKnown = (provider: string) => this.#served.has(provider) || this.#draining.has(provider);
    const drain = (provider: string) => this.#inTurn(() => this.#drainLeft(provider));
    this.#former = new FormerProviders(this.#context, (provider) => this.providers.get(provider));
    this.#left = new LeftProviders(this.#context, isKnown, drain);
  }

  /** Tells the scheduler of the pools and the configuration as they are now. */
  tellScheduler(): void {
    this.#tellScheduler(this.locals());
  }

  #onChange(): void {
    this.tellScheduler();
    this.#context.onStanding();
  }

  /** Inventories of hosts wait for records to go or to be free, and uses of nodes are noted. */
  #onEvent(event: ViewEvent): void {
    // A record that could not be read may have occupied the slot of any static host.
    if (event.type === "unreadable" && event.after === undefined)
      for (const { inventory } of this.#served.values()) inventory?.wake();
    if (event.type !== "node" || event.before === undefined) return;
    const inventory = this.#served.get(event.before.record.provider ?? "")?.inventory;
    // The inventory may lack a slot now.
    if (event.after === undefined) inventory?.wake();
    // A host that left the configuration, or has other settings, waits for its record to be free.
    else if (becameFree(event)) inventory?.wakeForFree();
    noteUse(event, this.#context, this.pools);
  }

  /** What the scheduler is to know of the providers that are open, or will be. */
  locals(): ReturnType<typeof localsOf> & Pick<Policy, "opening"> {
    const opening = openingOf([...this.#served.values(), ...this.#replacements.values()]);
    return { ...localsOf([...this.#served.values(), ...this.#draining.values()], this.pools), opening };
  }

  /** What this launcher reports of its providers, hosts and labels. */
  facts(config: Parameters<typeof launcherFacts>[0]): ReturnType<typeof launcherFacts> {
    return launcherFacts(config, this.#served, this.#replacements, this.#context.view, this.stranded());
  }

  /** What an hour of a node of the label costs in a pool, by its key; undefined: that is not known. */
  price(pool: string, label: string): Price | undefined {
    const { open, name } = this.pools.get(pool) ?? {};
    const { config, driver: { slots } = {} } = open ?? {};
    if (slots === undefined)
      return this.#served
        .get(config?.name ?? "")
        ?.facts?.prices.get(pool)
        ?.get(label);
    const settings = config?.pools.find((one) => one.name === name)?.labels.get(label);
    return settings && this.#slotPrice(slots.of(settings));
  }

  /** An equal part of what backing nodes cost, unless that depends on the pool in which they will be. */
  #slotPrice({ backingLabel, slots }: SlotSettings): Price | undefined {
    const prices = [...this.#served.values()].flatMap(({ facts }) =>
      [...(facts?.prices.values() ?? [])].flatMap((labels) => labels.get(backingLabel) ?? []),
    );
    const [first] = prices;
    if (first === undefined || slots < 1) return undefined;
    const { perHour, currency } = first;
    const agree = prices.every((price) => price.perHour === perHour && price.currency === currency);
    return agree ? { perHour: perHour / slots, currency } : undefined;
  }

  /** Providers that could not be opened as they are configured, or are suspended, which is the same here: without `open`. */
  closed(): readonly ClosedProvider[] {
    return [...closedOf(this.#served.values(), false), ...closedOf(this.#replacements.values(), true)];
  }

  /** Serves exactly `configs`. Resolves when each provider was tried once; a later call need not wait for that. */
  async apply(configs: readonly ProviderConfig[]): Promise<void> {
    const tries = await this.#inTurn(() => this.#begin(configs));
    await Promise.all(tries);
    this.#onChange();
  }

  /** The open provider that can delete the machine of a record: a former one, if the present one looks elsewhere. */
  openFor(record: NodeRecord): OpenProvider | undefined {
    const open = this.providers.get(record.provider ?? "");
    if (open === undefined || !isElsewhere(record, open.provider.place?.())) return open;
    return this.#former.of({ record }) ?? open;
  }

  /** Nodes that are not given out any more, and that somebody has to know of: where their providers do not look, or of none at all. */
  stranded(): readonly Stranded[] {
    const { view } = this.#context;
    const isKnown = (provider: string) => this.#served.has(provider) || this.#draining.has(provider);
    return [
      ...[...this.providers.values()].flatMap(({ config: { name }, provider }) =>
        [...elsewhereIn(view, name, provider.place?.())].map(([place, nodes]) => {
          return { why: "elsewhere", provider: name, place, nodes } as const;
        }),
      ),
      ...[...this.#draining.keys()].map((provider) => {
        return {
          why: "leaving",
          provider,
          place: null,
          nodes: view.nodes.byProvider.count(provider),
        } as const;
      }),
      ...[...leftNodes(view, isKnown)].map(([provider, nodes]) => {
        return { why: "unserved", provider, place: null, nodes } as const;
      }),
    ];
  }

  /** Looks for what providers left that are served no more, here or by launchers that are gone. Call it on a complete view. */
  async sweep(): Promise<void> {
    await this.#inTurn(() => this.#clearDrained());
    for (const served of await this.#former.sweep()) await this.#retire(served);
    await this.#left.sweep();
  }

  /** Deletes the free nodes of providers that left the configuration, and closes those of which none is left. */
  async #clearDrained(): Promise<void> {
    for (const served of [...this.#draining.values()]) {
      const { name } = served.config;
      if (served.backings !== undefined || (served.open?.work.size ?? 0) > 0) continue;
      const nodes = nodesOf(this.#context, name);
      // Another launcher has it in its configuration: the nodes are given out there.
      if (nodes.length === 0 || (await isServed(this.#context, name))) await this.#retire(served);
      else await takeOutFree(this.#context, nodes, "its provider has left the configuration");
    }
  }

  /** Runs `work` after all that came before it. Rejects with the error of `work`, which stops nothing that comes after. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#applying.then(work);
    this.#applying = next.catch(() => {});
    return next;
  }

  /**
   * A provider that is not configured any more is drained, and one that is configured again while it is drained starts anew. Resolves when the rest
   * has been begun, with a promise for each first try.
   */
  async #begin(configs: readonly ProviderConfig[]): Promise<readonly Promise<unknown>[]> {
    const wanted = new Set(configs.map(({ name }) => name));
    const gone = [...this.#replacements.values(), ...this.#served.values()];
    await Promise.all(
      gone.filter(({ config }) => !wanted.has(config.name)).map((served) => this.#drain(served)),
    );
    const back = [...this.#draining.values()].filter(({ config }) => wanted.has(config.name));
    await Promise.all(back.map((served) => this.#retireOrKeep(served)));
    return this.#stopped ? [] : configs.map((config) => this.#serve(config));
  }

  /** Reads the facts of a provider soon, because the use of its quota by others may have changed. */
  askQuota(provider: string): void {
    const served = this.#served.get(provider);
    if (served?.open !== undefined) served.controller.wake(ASK_MS);
  }

  /** Shows other launchers whether the pool's queue is blocked (docs/contract/launcher.md, "A full pool"). */
  setPaused(key: string, paused: boolean): void {
    const pool = this.pools.get(key);
    if (pool !== undefined) void this.#registration.update(pool.id, { paused });
  }

  /** Removes all pools from the registry, so that no request waits for them. Providers that are being opened do not register any more. */
  async unregister(): Promise<void> {
    this.#stopped = true;
    const all = [...this.#replacements.values(), ...this.#served.values()];
    await Promise.all([
      ...all.filter(({ open }) => open === undefined).map((served) => this.#retire(served, 0)),
      ...[...this.pools.values()].map(({ id }) => this.#registration.unregister(id)),
    ]);
  }

  /** Closes all providers without waiting for their work; `unregister` and the end of the tasks come before. */
  async close(): Promise<void> {
    this.#stopped = true;
    const maps = [this.#replacements, this.#served, this.#draining].flatMap((map) => [...map.values()]);
    const all = [...maps, ...this.#former.clear()];
    await Promise.all(all.map((served) => this.#retire(served, 0)));
  }

  /**
   * An open provider is served until its replacement is registered, however long that takes. So a cloud outage during a change of the
   * configuration interrupts nothing, and there is no moment without a pool, in which a request would count as declined by all.
   */
  async #serve(config: ProviderConfig): Promise<void> {
    const { name } = config;
    const [before, next] = [this.#served.get(name), this.#replacements.get(name)];
    if (isDeepStrictEqual(config, (next ?? before)?.config)) return;
    const isOpen = before?.open !== undefined;
    const outdated = isOpen ? next : before;
    const left = outdated === undefined ? undefined : this.#retire(outdated);
    // Else it is configured again as it is served.
    if (!isOpen || !isDeepStrictEqual(config, before.config)) {
      const served = this.#new(config);
      (isOpen ? this.#replacements : this.#served).set(name, served);
      await served.controller.look();
    }
    await left;
  }

  /** One controller opens the provider and then keeps its facts fresh, so that the two never run at once. */
  #new(config: ProviderConfig): Served {
    return newServed(
      config,
      (served) =>
        new Controller(this.#context, {
          name: `provider ${config.name}`,
          site: "launcher/providers/serving.ts",
          reconcile: () => this.#look(served()),
          failed: (error, attempt) => this.#failed(served(), error, attempt),
        }),
    );
  }

  /** Returns when to look again, milliseconds; undefined: not before it is woken. */
  async #look(served: Served): Promise<number | undefined> {
    if (served.stop.signal.aborted) return undefined;
    if (served.open === undefined) return this.#tryOpen(served);
    if (!(await refreshFacts(this.#context, served))) return undefined;
    this.#onChange();
    return factsPause(served);
  }

  async #tryOpen(served: Served): Promise<number> {
    const { config, stop } = served;
    const context = this.#context;
    // After a suspension: its pools are out of the registry and its controllers have ended before it is open a second time.
    await served.leaving;
    served.lastTry = undefined;
    const open = await this.#open(config, stop.signal, (error) => this.#noAnswer(served, error));
    let before: Served | undefined;
    try {
      const facts = await learnFacts(open, context, stop.signal);
      stop.signal.throwIfAborted();
      // After this the launcher accepts requests for it, and the provider that it replaces gets no new ones.
      before = await this.#register(served, open, facts);
    } catch (error) {
      await unregisterPools(this.#registration, served);
      await closeQuietly(context, config.name, open.provider);
      throw error;
    }
    this.#onChange();
    if (before !== undefined) await this.#retireOrKeep(before);
    reportElsewhere(context, open);
    return factsPause(served);
  }

  /** While the provider is being opened: shown at once, because the driver itself may try again for a minute. */
  #noAnswer(served: Served, error: unknown): void {
    if (served.open !== undefined || served.stop.signal.aborted) return;
    served.lastTry = messageOf(error);
    const now = Math.round(this.#context.ages.now());
    const { since = now } = served.failing ?? {};
    served.failing = { code: closedCode(error), since, error: served.lastTry, nextTry: now };
    this.#context.onStanding();
  }

  async #open(
    config: ProviderConfig,
    signal: AbortSignal,
    onFailedTry?: (error: unknown) => void,
  ): Promise<OpenProvider> {
    const driver = await this.#driverOf(config.driver);
    // Before anything is opened: a driver for static hosts would begin to register them.
    if (this.#acts && isExclusive(driver)) await refuseForeign(this.#context, config.name);
    return openProvider(driver, config, this.#context, signal, onFailedTry);
  }

  /** Notes the failure for `explain` and the log. Returns the pause before the next try, milliseconds. */
  #failed(served: Served, error: unknown, attempt: number): number | undefined {
    const { config, open, stop } = served;
    if (stop.signal.aborted) return undefined;
    const { random, log, ages } = this.#context;
    const pause = open === undefined ? backoff(random, attempt, 1_000, 60_000) : FAILING_MS;
    const now = Math.round(ages.now());
    // The time of the first failure in a row, which `explain` shows.
    const since = served.failing?.since ?? now;
    const code = open === undefined ? closedCode(error) : "provider.failing";
    const cause = openingError(error, served.lastTry);
    served.failing = { code, since, error: cause, nextTry: now + Math.round(pause) };
    this.#context.onStanding();
    const facts = { provider: config.name, error: cause, retryMs: Math.round(pause) };
    if (open !== undefined) {
      log.warn(facts, "cannot read a provider's quota; the last known one stays in force");
      this.#onChange();
    } else if (this.#replacements.get(config.name) === served)
      log.error(facts, "cannot open a provider with its new configuration; it keeps the former one");
    else log.error(facts, "cannot open a provider; the others continue");
    return pause;
  }

  /** Stops serving the provider: its pools leave the registry, and it is tried again like one that could not be opened. */
  async #suspend(served: Served, why: Error): Promise<void> {
    const { config, open, stop } = served;
    if (open === undefined || stop.signal.aborted || this.#served.get(config.name) !== served) return;
    const next = this.#replacements.get(config.name);
    if (next !== undefined) {
      // That one is tried already, and has nothing to take the place of any more.
      this.#replacements.delete(config.name);
      this.#served.set(config.name, next);
      return this.#retire(served);
    }
    this.#withdraw(served);
    served.open = undefined;
    served.facts = undefined;
    served.leaving = leave(this.#context, this.#registration, served, open, RETIRE_MS);
    await served.leaving;
    served.controller.wake(this.#failed(served, why, 0));
  }

  /** Registers the pools; each is served from the moment that its component exists. Resolves with the provider that it replaces. */
  async #register(served: Served, open: OpenProvider, learnt: ProviderFacts): Promise<Served | undefined> {
    const context = this.#context;
    const { config, stop } = served;
    const pools = await registerPools(this.#registration, this.#identity, context, served, open, learnt);
    stop.signal.throwIfAborted();
    served.open = open;
    served.facts = learnt;
    served.failing = undefined;
    open.troubles.onDoubt = () => served.leaks?.wake(ASK_MS);
    open.troubles.onChange = (isOther) => {
      context.onStanding();
      if (isOther) this.#onChange();
    };
    const before = this.#served.get(config.name);
    this.#replacements.delete(config.name);
    this.#served.set(config.name, served);
    context.ledgers.setProvider(config.name, learnt.local.quota);
    for (const { key, launches, limits } of learnt.pools)
      context.ledgers.setPool(key, launches ? limits : {});
    this.providers.set(config.name, open);
    for (const pool of pools) this.pools.set(pool.key, pool);
    if (this.#acts) begin(context, served, open, (why) => void this.#suspend(served, why));
    return before === served ? undefined : before;
  }

  /** It has left the configuration. Its nodes are still deleted as it was configured: free ones now, others when they come back. */
  async #drain(served: Served): Promise<void> {
    const { config, backings } = served;
    const nodes = nodesOf(this.#context, config.name).length;
    const isNeeded = served.open !== undefined && this.#served.get(config.name) === served;
    // Records that were made or registered a moment ago are not in the view yet: the sweep looks again.
    const mayMake = (served.open?.work.size ?? 0) > 0 || served.inventory !== undefined;
    if (!isNeeded || (nodes === 0 && backings === undefined && !mayMake)) return this.#retire(served);
    this.#served.delete(config.name);
    this.#draining.set(config.name, served);
    this.#withdraw(served);
    void served.controller.close();
    await Promise.all([unregisterPools(this.#registration, served), served.inventory?.close()]);
    const { log } = this.#context;
    const facts = { provider: config.name, nodes };
    if (nodes > 0)
      log.error(
        facts,
        "a provider left the configuration with nodes: it is served no more, free nodes are deleted now and others when they are returned; until then do not remove its credentials, and do not stop this launcher, which alone has its settings",
      );
    if (backings !== undefined) await backings.drain(() => this.#drained(served));
    // The sweep repeats it.
    else if (nodes > 0)
      await this.#clearDrained().catch((error: unknown) => log.warn(facts, messageOf(error)));
  }

  /** Closes it, unless machines are where it alone looks. */
  async #retireOrKeep(served: Served): Promise<void> {
    if (!this.#former.keep(served)) return this.#retire(served);
    for (const map of [this.#served, this.#replacements, this.#draining])
      if (map.get(served.config.name) === served) map.delete(served.config.name);
    this.#withdraw(served);
    void served.controller.close();
    await Promise.all([unregisterPools(this.#registration, served), served.inventory?.close()]);
    for (const over of await this.#former.sweep()) await this.#retire(over);
  }

  #drained(served: Served): void {
    if (this.#draining.get(served.config.name) === served) void this.#retire(served);
  }

  /** It left the configuration of a launcher that is no more. */
  async #drainLeft(provider: string): Promise<void> {
    if (this.#stopped || this.#served.has(provider) || this.#draining.has(provider)) return;
    const served = this.#new(withoutPools(provider, await this.#driverOf(METASTATIC)));
    const open = await this.#open(served.config, served.stop.signal);
    served.open = open;
    served.facts = await learnFacts(open, this.#context, served.stop.signal);
    this.#draining.set(provider, served);
    this.providers.set(provider, open);
    this.#onChange();
    beginBackings(this.#context, served, open);
    await served.backings?.drain(() => this.#drained(served));
  }

  /** Closes the provider when its work in progress has ended, or after `graceMs` milliseconds. */
  async #retire(served: Served, graceMs = RETIRE_MS): Promise<void> {
    const { config, open, stop } = served;
    stop.abort(new Error(`provider ${config.name} is stopped`));
    void served.controller.close();
    for (const map of [this.#served, this.#replacements, this.#draining])
      if (map.get(config.name) === served) map.delete(config.name);
    this.#withdraw(served);
    await leave(this.#context, this.#registration, served, open, graceMs);
  }

  /** Nothing new is begun with it. */
  #withdraw(served: Served): void {
    const { config, open, leaks } = served;
    void leaks?.close();
    const drains = this.#draining.get(config.name)?.open === open;
    if (this.providers.get(config.name) === open && !drains) this.providers.delete(config.name);
    for (const [key, pool] of this.pools) if (pool.open === open) this.pools.delete(key);
    this.#onChange();
  }
}
