import type { Resources } from "../resources.ts";
import { uniquePools } from "./common.ts";
import type { PoolConfig } from "./compiled.ts";
import type { Entry } from "./words.ts";

type CommonPool = Entry<{
  readonly name: string;
  readonly limits: Resources;
  readonly nodeAttributes: Readonly<Record<string, unknown>> | null;
  readonly priority: number | undefined;
}>;

/** Pools of a provider; `make` adds what is the driver's. */
export function compilePools<P extends CommonPool, PoolOwn, LabelOwn>(
  provider: Entry<{ readonly priority: number; readonly pools: readonly P[] }>,
  make: (
    pool: P,
  ) => Pick<PoolConfig<PoolOwn, LabelOwn>, "labels" | "own"> & Partial<PoolConfig<PoolOwn, LabelOwn>>,
): readonly PoolConfig<PoolOwn, LabelOwn>[] {
  const pools = provider.pools.map((pool) => ({
    name: pool.name,
    priority: pool.priority ?? provider.priority,
    nodeAttributes: pool.nodeAttributes,
    limits: pool.limits,
    availabilityZones: [],
    useInternalIp: false,
    ...make(pool),
  }));
  return uniquePools(provider.at, pools);
}
