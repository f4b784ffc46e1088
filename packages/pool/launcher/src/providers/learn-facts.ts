import {
  idText,
  type Price,
  type Provider,
  type ProviderConfig,
  type Resources,
  type SlotSettings,
} from "@nodeyard/driver";
import { deadline, messageOf } from "@nodeyard/runtime";
import type { LocalOffering, LocalPool, LocalProvider, LocalReuse } from "@nodeyard/scheduler";
import { poolKey } from "@nodeyard/view";
import type { OpenProvider } from "../handles.ts";
import { needOf } from "./offerings.ts";
import { labelPrices } from "./prices.ts";
import { ANSWER_MS, type CloudHandles, silent } from "./providers.ts";
import { settingsOf } from "./settings.ts";
import { machinesOf } from "./survey.ts";

/** The facts of a provider that the scheduler needs. */
export interface ProviderFacts {
  readonly local: LocalProvider;
  /** Without ids: these are given when the pools are registered. */
  readonly pools: readonly Omit<LocalPool, "id">[];
  /** What an hour of one node costs, by pool and label; without what is not known. */
  readonly prices: ReadonlyMap<string, ReadonlyMap<string, Price>>;
  /** The cloud lists machines of ours without a record. They count as used by others until they are deleted. */
  readonly unsettled: boolean;
}

/**
 * Asks the cloud for its quota and for what each label takes. A label that can never work is left out with its reason. Called when a
 * provider is opened, then every few minutes (facts.ts). Rejects with the driver's error, or with `silent` after a minute.
 */
export async function learnFacts(
  open: OpenProvider,
  handles: CloudHandles,
  parent: AbortSignal,
): Promise<ProviderFacts> {
  const { config, driver } = open;
  using limit = deadline(handles.clock, ANSWER_MS, () => silent(config.name, "quota and labels"), parent);
  // Static hosts have no quota; their number is the inventory's.
  const limits = driver.capabilities.launches ? await open.provider.quota(limit.signal) : {};
  const { quota, unsettled } = await freeQuota(open, limits, handles, limit.signal);
  const readAt = Math.round(handles.ages.now());
  const slots = slotSettingsOf(open);
  const place = open.provider.place?.();
  const pools = await Promise.all(
    config.pools.map((pool) => poolFacts(open, pool, limits, handles, limit.signal)),
  );
  const prices = new Map<string, ReadonlyMap<string, Price>>();
  if (driver.capabilities.launches)
    for (const pool of config.pools)
      prices.set(poolKey(config.name, pool.name), await labelPrices(open, pool, handles, limit.signal));
  return {
    local: {
      name: config.name,
      maxConcurrency: config.maxConcurrency,
      ...(place && { place }),
      ...(open.provider.offers?.suspension && { suspends: true }),
      ...((slots !== undefined || !driver.capabilities.launches) && { outlivesNodes: true }),
      ...(slots && { slots }),
      quota,
      limits,
      readAt,
    },
    pools,
    prices,
    unsettled,
  };
}

/**
 * How the labels of a provider are cut into slots; of several pools with one label the first counts (docs/contract/drivers.md, "Giving
 * backing nodes back"). Undefined: its nodes are no slots.
 */
export function slotSettingsOf({ config, driver: { slots } }: OpenProvider): LocalProvider["slots"] {
  if (slots === undefined) return undefined;
  const settings = new Map<string, SlotSettings>();
  for (const pool of config.pools)
    for (const label of pool.labels.values()) {
      if (!settings.has(label.name)) settings.set(label.name, slots.of(label));
    }
  return settings;
}

/**
 * The cloud's limits less what others use (docs/contract/launcher.md, "Quota and limits"). Others are all machines without a record:
 * foreign machines, those of other installations, and leaked ones until they are deleted. A machine that a Python launcher made has no
 * tag of ours, but is known by the id in its record, where it is counted already.
 */
async function freeQuota(
  { config, driver, provider }: OpenProvider,
  limits: Resources,
  handles: CloudHandles,
  signal: AbortSignal,
): Promise<{ readonly quota: Resources; readonly unsettled: boolean }> {
  if (!driver.capabilities.tags || Object.keys(limits).length === 0)
    return { quota: limits, unsettled: false };
  let unsettled = false;
  const free: Record<string, number> = { ...limits };
  const { view } = handles;
  const { byId } = view.nodes;
  // A machine that is deleted during the listing may still be listed. It is not used by others.
  const before = new Set(byId.keys());
  // By the ids in records before and after the call: a record may get its machine's id, or go, while the cloud answers.
  const made = machinesOf(byId.values(), config.name);
  const listed = await provider.list(signal);
  for (const id of machinesOf(byId.values(), config.name)) made.add(id);
  for (const { id, tag, resources } of listed) {
    if (made.has(idText(id))) continue;
    const ours = tag?.installation === handles.installation && tag.provider === config.name;
    if (ours && (before.has(tag.nodeId) || view.hasNode(tag.nodeId))) continue;
    unsettled ||= ours;
    for (const [name, amount] of Object.entries(resources)) {
      // A resource that the cloud does not limit stays unlimited, whatever others use of it.
      if (free[name] !== undefined) free[name] = Math.max(0, free[name] - amount);
    }
  }
  return { quota: free, unsettled };
}

/**
 * The facts of one pool. A label of which the driver says that it cannot work is left out; other errors reject, and the whole is tried
 * again.
 */
async function poolFacts(
  open: OpenProvider,
  pool: ProviderConfig["pools"][number],
  limits: Resources,
  handles: CloudHandles,
  signal: AbortSignal,
): Promise<Omit<LocalPool, "id">> {
  const { config, driver, provider } = open;
  const launched = await launchFacts(open, pool, limits, handles, signal);
  const { unavailable } = launched;
  let zones: readonly string[] = [];
  try {
    zones = await zonesOf(provider, pool, signal);
  } catch (error) {
    // A wrong subnet is this pool's alone; the others serve.
    if ((error as { kind?: string }).kind !== "configuration") throw error;
    const why = `pool ${pool.name}: ${messageOf(error)}`;
    for (const label of pool.labels.keys()) unavailable.set(label, why);
    handles.log.error(
      { provider: config.name, error: why },
      "a pool can never work as it is configured; the others serve",
    );
  }
  const inventory = countInventory(provider, pool.name);
  const { types } = provider.offers ?? {};
  const reuse = reuseFacts(open, pool);
  const named = types && new Map([...pool.labels.values()].map((label) => [label.name, types.of(label)]));
  return {
    key: poolKey(config.name, pool.name),
    provider: config.name,
    name: pool.name,
    labels: new Set([...pool.labels.keys(), ...inventory.keys()]),
    priority: pool.priority,
    limits: pool.limits,
    launches: driver.capabilities.launches,
    ...launched,
    ignoresQuota: pool.ignoreProviderQuota === true,
    zones,
    ...(named && { types: named }),
    ...(reuse.size > 0 && { reuse }),
    inventory,
  };
}

/** How nodes of labels are used again: not where they are slots of other nodes, or hosts that go on. */
function reuseFacts(
  { driver }: OpenProvider,
  pool: ProviderConfig["pools"][number],
): ReadonlyMap<string, LocalReuse> {
  const facts = new Map<string, LocalReuse>();
  if (driver.slots !== undefined || !driver.capabilities.launches) return facts;
  for (const label of pool.labels.values())
    if (label.reuse !== undefined) {
      const { times, forMs, idleMs, forAll } = label.reuse;
      facts.set(label.name, { times, forMs, idleMs, forAll, settings: settingsOf(pool, label) });
    }
  return facts;
}

/** What the launches of each label of a pool take and boot; empty where the driver launches nothing. */
async function launchFacts(
  open: OpenProvider,
  pool: ProviderConfig["pools"][number],
  limits: Resources,
  handles: CloudHandles,
  signal: AbortSignal,
) {
  const { name: provider } = open.config;
  const needs = new Map<string, Resources>();
  const offerings = new Map<string, readonly LocalOffering[]>();
  const unavailable = new Map<string, string>();
  const images = new Map<string, string>();
  for (const label of open.driver.capabilities.launches ? pool.labels.values() : []) {
    if (label.image?.kind === "diskimage") {
      images.set(label.name, label.image.name);
      if (label.image.listed === false)
        unavailable.set(
          label.name,
          `images are not available (provider ${provider} does not list diskimage ${label.image.name})`,
        );
    }
    try {
      const known = await needOf(open, pool, label, limits, handles, signal);
      needs.set(label.name, known.need);
      if (known.offerings !== undefined) offerings.set(label.name, known.offerings);
    } catch (error) {
      if ((error as { kind?: string }).kind !== "configuration") throw error;
      unavailable.set(label.name, messageOf(error));
      handles.log.error(
        { provider, label: label.name, error: messageOf(error) },
        "a label can never work as it is configured",
      );
    }
  }
  return { needs, unavailable, images, ...(offerings.size > 0 && { offerings }) };
}

/** What the file names; else what the cloud has. */
async function zonesOf(
  provider: Provider,
  pool: ProviderConfig["pools"][number],
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (pool.availabilityZones.length > 0) return pool.availabilityZones;
  return (await provider.offers?.zones?.list(pool, signal)) ?? [];
}

/** Number of slots of static hosts in the pool that have a label, by label. */
function countInventory(provider: Provider, pool: string): Map<string, number> {
  const slots = new Map<string, number>();
  for (const item of provider.inventory()) {
    if (item.pool !== pool) continue;
    for (const label of item.labels) slots.set(label, (slots.get(label) ?? 0) + item.slots);
  }
  return slots;
}
