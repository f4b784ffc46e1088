import { labelMap, readCommonPool, readLimits, uniquePools } from "./common.ts";
import type { LabelConfig, PoolConfig, ProviderConfig } from "./compiled.ts";
import type { LoadContext } from "./driver-config.ts";
import type { Reader } from "./reader.ts";

/** Pools of one's own machines: without zones, flavors, or anything that is the driver's but what its labels say. */
export function readMachinePools<LabelOwn>(
  provider: Reader,
  common: Pick<ProviderConfig, "priority">,
  context: LoadContext,
  read: {
    /** Keys of the file, by the resource that each limits. */
    readonly limits: Readonly<Record<string, string>>;
    readonly label: (from: Reader) => LabelConfig<LabelOwn> | undefined;
  },
): readonly PoolConfig<undefined, LabelOwn>[] {
  const pools = provider.mappings("pools").flatMap((from): PoolConfig<undefined, LabelOwn>[] => {
    const base = readCommonPool(from, common);
    if (base === undefined) return [];
    const labels = from.mappings("labels").flatMap((at) => {
      const label = read.label(at);
      return label === undefined ? [] : [[at, label] as const];
    });
    const pool = {
      ...base,
      limits: { ...base.limits, ...readLimits(from, read.limits) },
      labels: labelMap(from, labels, context),
      availabilityZones: [],
      useInternalIp: false,
      own: undefined,
    };
    return [pool];
  });
  return uniquePools(provider, pools);
}
