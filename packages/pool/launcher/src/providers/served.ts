import { type Controller, closeQuietly, poolComponent, type Registration } from "@nodeyard/coordination";
import { type Driver, DriverError, type ProviderConfig } from "@nodeyard/driver";
import { launcherPoolId } from "@nodeyard/model";
import { hexId, settledWithin } from "@nodeyard/runtime";
import type { LocalPool, LocalProvider, OpeningPool, VerdictCode } from "@nodeyard/scheduler";
import { poolKey } from "@nodeyard/view";
import type { OpenProvider, ServingPool } from "../handles.ts";
import { BackingController } from "../metastatic/controller.ts";
import { ForeignLauncher, foreignWatch } from "./foreign.ts";
import { InventoryKeeper } from "./inventory.ts";
import { type Brake, leakSweep, SWEEP_MS } from "./leaks.ts";
import type { ProviderFacts } from "./learn-facts.ts";
import type { ProviderHandles } from "./providers.ts";

/** A provider of the configuration, whether or not it is open. */
export interface Served {
  readonly config: ProviderConfig;
  /** Aborted when it is replaced, removed or closed: the controller and calls of the provider under way end. */
  readonly stop: AbortController;
  /** Ids of its pools that stand in the registry or may. */
  readonly registered: string[];
  /** Undefined before the first success, and while it is suspended. */
  open: OpenProvider | undefined;
  /** Set together with `open`; replaced at each refresh. */
  facts: ProviderFacts | undefined;
  /** This and the next three run only where the driver has the capability, from registration on. */
  inventory: InventoryKeeper | undefined;
  backings: BackingController | undefined;
  leaks: Controller | undefined;
  foreign: { close(): void } | undefined;
  /** What sweeps do not delete, since it is too much at once; undefined: nothing. */
  brake: Brake | undefined;
  /** After a suspension: resolves when its pools are out of the registry and its controllers have ended. It is not opened again before. */
  leaving: Promise<void> | undefined;
  /** Opens the provider, then refreshes its facts. */
  readonly controller: Controller;
  /** Why the last request of the opening that is under way had no answer; undefined: none was without. */
  lastTry: string | undefined;
  /** Times in a row that the cloud listed machines of ours without a record. */
  unsettled: number;
  /** Set while the provider cannot be opened or its API fails: since when, the error, and the time of the next try. */
  failing:
    | {
        readonly code: VerdictCode;
        readonly since: number;
        readonly error: string;
        readonly nextTry: number;
      }
    | undefined;
}

/** Why the provider does not work now: its opening or its quota failed, or another of its calls. */
export function failingOf({ failing, open }: Pick<Served, "failing" | "open">): Served["failing"] {
  const trouble = open?.troubles.first;
  if (failing !== undefined || trouble === undefined) return failing;
  // The sweep asks again after a minute, if nothing does before.
  return { ...trouble, nextTry: trouble.tried + SWEEP_MS };
}

/** What keeps a provider from being opened: not every reason is its API. */
export function closedCode(error: unknown): VerdictCode {
  if (error instanceof ForeignLauncher) return "provider.foreign";
  return error instanceof DriverError && (error.kind === "configuration" || error.kind === "access")
    ? "provider.configuration"
    : "provider.failing";
}

/** A provider that is not open yet. `controllerOf` gets a function, since the controller and what it works on refer to each other. */
export function newServed(
  config: ProviderConfig,
  controllerOf: (served: () => Served) => Controller,
): Served {
  const served: Served = {
    config,
    stop: new AbortController(),
    registered: [],
    open: undefined,
    facts: undefined,
    inventory: undefined,
    backings: undefined,
    leaks: undefined,
    foreign: undefined,
    brake: undefined,
    leaving: undefined,
    controller: controllerOf(() => served),
    lastTry: undefined,
    unsettled: 0,
    failing: undefined,
  };
  return served;
}

/** A provider that cannot be served as it is configured. */
export interface ClosedProvider {
  /** As configured. */
  readonly name: string;
  /** The provider is still served by its former configuration; the new one is not in force. */
  readonly isStillServed: boolean;
  readonly pools: readonly { readonly name: string; readonly labels: ReadonlySet<string> }[];
  /** Why it cannot. */
  readonly code: VerdictCode;
  /** Tree time, milliseconds. */
  readonly since: number;
  /** Tree time, milliseconds. */
  readonly nextTry: number;
  /** The message of the last error, for people. */
  readonly error: string;
}

/** The providers that are not open. `isStillServed`: their former configuration is still served. */
export function closedOf(all: Iterable<Served>, isStillServed: boolean): readonly ClosedProvider[] {
  return [...all].flatMap(({ config, open, failing }) => {
    if (open !== undefined || failing === undefined) return [];
    const pools = config.pools.map(({ name, labels }) => ({ name, labels: new Set(labels.keys()) }));
    return [{ name: config.name, isStillServed, pools, ...failing }];
  });
}

/** The pools of providers that are not open, or not with their new configuration: requests may wait for them. */
export function openingOf(all: Iterable<Served>): readonly OpeningPool[] {
  return [...all].flatMap(({ config, open }) =>
    open !== undefined
      ? []
      : config.pools.map(({ name, labels }) => ({
          key: poolKey(config.name, name),
          provider: config.name,
          labels: new Set(labels.keys()),
        })),
  );
}

/**
 * The open providers as the scheduler sees them. A provider without facts has none here, and so gets no plans. Drained providers are
 * listed without pools: their nodes are still looked after.
 */
export function localsOf(
  all: Iterable<Served>,
  serving: ReadonlyMap<string, ServingPool>,
): { readonly pools: readonly LocalPool[]; readonly providers: ReadonlyMap<string, LocalProvider> } {
  const pools: LocalPool[] = [];
  const providers = new Map<string, LocalProvider>();
  for (const one of all) {
    const { facts } = one;
    const failing = failingOf(one);
    if (facts === undefined) continue;
    providers.set(facts.local.name, failing === undefined ? facts.local : { ...facts.local, failing });
    for (const pool of facts.pools) {
      const served = serving.get(pool.key);
      if (served !== undefined) pools.push({ ...pool, id: served.id });
    }
  }
  return { pools, providers };
}

/** Where pools are announced: among the components of the tree. */
export type Registry = Pick<Registration, "register" | "update" | "unregister">;

/** Who this process is, for the records it writes. */
export interface Identity {
  readonly hostname: string;
  /** Part of the launcher-pool id, as with Nodepool. */
  readonly fqdn: string;
  readonly version: string;
}

/** Creates the components that announce the pools of a provider. Each is noted before it is created, so that it can be removed. */
export async function registerPools(
  registration: Registry,
  identity: Identity,
  context: Pick<ProviderHandles, "random">,
  { config, registered, stop }: Served,
  open: OpenProvider,
  learnt: ProviderFacts,
): Promise<readonly ServingPool[]> {
  const pools: ServingPool[] = [];
  for (const pool of learnt.pools) {
    // A new id each time: a pool with a new configuration has not declined what the former one declined.
    const id = launcherPoolId({
      fqdn: identity.fqdn,
      provider: config.name,
      pool: pool.name,
      hex: hexId(context.random),
    });
    const facts = {
      ...identity,
      id,
      name: pool.name,
      provider: config.name,
      labels: [...pool.labels].sort(),
      priority: pool.priority,
    };
    registered.push(id);
    await registration.register(id, poolComponent(facts));
    // The caller takes back what is registered by now.
    stop.signal.throwIfAborted();
    pools.push({ key: pool.key, id, name: pool.name, open });
  }
  return pools;
}

/** Takes away all of it that stands in the registry or may. May be called again; a second call finds nothing. */
export async function unregisterPools(registration: Registry, { registered }: Served): Promise<void> {
  await Promise.all(registered.splice(0).map((id) => registration.unregister(id)));
}

/** How long work in progress with a replaced or removed provider may take, milliseconds. */
export const RETIRE_MS = 3_600_000;

/** How long a launcher that stops waits for the controllers of a provider, milliseconds. */
const STOP_MS = 2_000;

/** Starts the controllers of a provider whose pools are registered. */
export function begin(
  context: ProviderHandles,
  served: Served,
  open: OpenProvider,
  onForeign: (why: Error) => void,
): void {
  if (isExclusive(open.driver)) served.foreign = foreignWatch(context, open.config.name, onForeign);
  if (open.driver.capabilities.inventory) {
    served.inventory = new InventoryKeeper(context, open, context.onStanding);
    served.inventory.start();
  }
  // Clouds send no events for leaked resources, so this sweep runs by time alone.
  if (open.driver.capabilities.tags) {
    served.leaks = leakSweep(context, open, (brake) => {
      served.brake = brake;
      context.onStanding();
    });
    served.leaks.start();
  }
  beginBackings(context, served, open);
}

/** Looks after the backing nodes of a provider, where its nodes are slots of some. */
export function beginBackings(context: ProviderHandles, served: Served, open: OpenProvider): void {
  if (open.driver.slots === undefined) return;
  served.backings = new BackingController(context, open);
  served.backings.start();
}

/** Whether Python and Nodeyard launchers must not serve a provider of this driver together: its nodes are slots of existing machines. */
export function isExclusive({ capabilities, slots }: Driver): boolean {
  return capabilities.inventory || slots !== undefined;
}

/**
 * Takes its pools out of the registry, and closes it when the work under way has ended, or after `graceMs` under it. The last call of
 * the provider here is its `close`. Resolves before that when work under way is waited for.
 */
export async function leave(
  context: Pick<ProviderHandles, "clock" | "log" | "counters">,
  registration: Registry,
  served: Served,
  open: OpenProvider | undefined,
  graceMs: number,
): Promise<void> {
  served.foreign?.close();
  await unregisterPools(registration, served);
  const ended = Promise.all([served.inventory?.close(), served.backings?.close()]);
  // A launcher that stops does not wait for their calls of a tree that does not answer.
  if (graceMs > 0) await ended;
  else await settledWithin(context.clock, STOP_MS, ended);
  if (open === undefined) return;
  const close = () => closeQuietly(context, served.config.name, open.provider);
  if (open.work.size === 0 || graceMs === 0) return close();
  void settledWithin(context.clock, graceMs, Promise.allSettled(open.work)).then(close);
}
