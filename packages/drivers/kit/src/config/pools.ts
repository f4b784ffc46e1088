import type { Resources } from "../resources.ts";
import type { LabelConfig, PoolConfig, ProviderConfig } from "./compiled.ts";
import type { LoadContext } from "./driver-config.ts";
import type { Entry } from "./words.ts";

type CommonProvider = Omit<ProviderConfig, "pools" | "own">;
type CommonPool = Entry<{
  readonly name: string;
  readonly limits: Resources;
  readonly nodeAttributes: Readonly<Record<string, unknown>> | null;
  readonly priority: number | undefined;
}>;

/** The keys of a provider that the launcher reads, without those that only the driver or the builder reads. */
export function commonOf(provider: CommonProvider): CommonProvider {
  const { name, driver, maxConcurrency, priority, launchTimeoutMs, bootTimeoutMs, launchAttempts } = provider;
  const { prices } = provider;
  const hasPrices = prices !== undefined && Object.keys(prices.perHour).length > 0;
  return {
    ...{ name, driver, maxConcurrency, priority, launchTimeoutMs, bootTimeoutMs, launchAttempts },
    ...(hasPrices && { prices }),
  };
}

/** Compiles the pools of a provider; `make` adds the driver's part. Of several pools with one name the last counts, as in Nodepool. */
export function compilePools<P extends CommonPool, PoolOwn, LabelOwn>(
  provider: Entry<{ readonly priority: number; readonly pools: readonly P[] }>,
  make: (
    pool: P,
  ) => Pick<PoolConfig<PoolOwn, LabelOwn>, "labels" | "own"> & Partial<PoolConfig<PoolOwn, LabelOwn>>,
): readonly PoolConfig<PoolOwn, LabelOwn>[] {
  const byName = new Map<string, PoolConfig<PoolOwn, LabelOwn>>();
  for (const pool of provider.pools) {
    if (byName.has(pool.name))
      provider.at.warn("pools", `lists pool ${pool.name} twice; the last one counts`);
    byName.set(pool.name, {
      name: pool.name,
      priority: pool.priority ?? provider.priority,
      nodeAttributes: pool.nodeAttributes,
      limits: pool.limits,
      availabilityZones: [],
      useInternalIp: false,
      ...make(pool),
    });
  }
  return [...byName.values()];
}

/**
 * Compiles the labels of a pool by name; `make` returns undefined after an error. Of several definitions the last counts. Every name must
 * be a top-level label.
 */
export function compileLabels<L extends Entry<{ readonly name: string }>, Own>(
  pool: Entry<{ readonly labels: readonly L[] }>,
  context: LoadContext,
  make: (label: L) => Omit<LabelConfig<Own>, "name"> | undefined,
): ReadonlyMap<string, LabelConfig<Own>> {
  const byName = new Map<string, LabelConfig<Own>>();
  for (const label of pool.labels) {
    const { at, name } = label;
    const made = make(label);
    if (made === undefined) continue;
    if (!context.labels.has(name))
      at.error("name", `names label ${name}, which is not in the top-level labels; add it there`);
    if (byName.has(name)) pool.at.warn("labels", `defines label ${name} twice; the last one counts`);
    byName.set(name, { name, ...made });
  }
  return byName;
}
