import { labelMap, readCommonPool, readLimits, uniquePools } from "./common.ts";
import type { LabelConfig, PoolConfig, ProviderConfig } from "./compiled.ts";
import type { LoadContext } from "./driver-config.ts";
import type { Reader } from "./reader.ts";

const POOL_LIMITS = {
  cores: "max-cores",
  ram: "max-ram",
  volumes: "max-volumes",
  "volume-gb": "max-volume-gb",
};

/** What labels take from their pool where they say nothing themselves. */
export interface PoolDefaults<Own> {
  readonly hostKeyChecking: boolean;
  readonly own: Own;
}

/** Pools of a cloud with flavors, quotas and zones (docs/contract/config.md, "OpenStack keys"). */
export function readCloudPools<PoolOwn, LabelOwn>(
  provider: Reader,
  common: Pick<ProviderConfig, "priority">,
  context: LoadContext,
  read: {
    readonly own: (from: Reader) => PoolOwn;
    readonly label: (from: Reader, pool: PoolDefaults<PoolOwn>) => LabelConfig<LabelOwn> | undefined;
  },
): readonly PoolConfig<PoolOwn, LabelOwn>[] {
  const pools = provider.mappings("pools").flatMap((from): PoolConfig<PoolOwn, LabelOwn>[] => {
    const base = readCommonPool(from, common);
    if (base === undefined) return [];
    const own = read.own(from);
    const defaults = { hostKeyChecking: from.flag("host-key-checking", true), own };
    const labels = from.mappings("labels").flatMap((at) => {
      const label = read.label(at, defaults);
      return label === undefined ? [] : [[at, label] as const];
    });
    const pool = {
      ...base,
      limits: { ...base.limits, ...readLimits(from, POOL_LIMITS) },
      labels: labelMap(from, labels, context),
      availabilityZones: from.has("availability-zones") ? from.texts("availability-zones") : [],
      useInternalIp: false,
      ignoreProviderQuota: from.flag("ignore-provider-quota", false),
      own,
    };
    return [pool];
  });
  return uniquePools(provider, pools);
}

/** `launch-timeout`, `boot-timeout` and `launch-retries`; seconds where they are missing, by default a cloud's. */
export function readLaunchLimits(
  from: Reader,
  { launch = 3600, boot = 60 }: { readonly launch?: number; readonly boot?: number } = {},
): Pick<ProviderConfig, "launchTimeoutMs" | "bootTimeoutMs" | "launchAttempts"> {
  return {
    launchTimeoutMs: from.milliseconds("launch-timeout", launch),
    bootTimeoutMs: from.milliseconds("boot-timeout", boot),
    launchAttempts: Math.max(1, Math.floor(from.number("launch-retries", 3))),
  };
}
