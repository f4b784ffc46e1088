import {
  type LoadContext,
  labelMap,
  Reader,
  readCommonPool,
  readCommonProvider,
  readLimits,
  uniquePools,
} from "@nodeyard/driver";
import type { SliverPoolConfig, SliverProviderConfig } from "../own.ts";
import { readKeys, readLabel } from "./label.ts";
import { readMachines } from "./machines.ts";

/** Compiles a provider mapping. Every default is applied here. */
export function load(
  raw: Readonly<Record<string, unknown>>,
  context: LoadContext,
): SliverProviderConfig | undefined {
  const from = new Reader(raw, [], (finding) => context.report(finding));
  const common = readCommonProvider(from, "sliver");
  const signingKeys = from.needed("signing-keys");
  if (signingKeys === undefined) return undefined;
  if (!signingKeys.startsWith("/"))
    from.error("signing-keys", `is ${signingKeys}, which depends on who reads it; write an absolute path`);
  const epoch = from.number("epoch", 1);
  if (!Number.isSafeInteger(epoch) || epoch < 1)
    from.error("epoch", `is ${epoch}; write a whole number from 1 on`);
  const keys = readKeys(from);
  const pools = from.mappings("pools").flatMap((pool): SliverPoolConfig[] => {
    const base = readCommonPool(pool, common);
    return base === undefined ? [] : [readPool(pool, base, keys, context)];
  });
  return {
    ...common,
    pools: uniquePools(from, pools),
    launchTimeoutMs: from.milliseconds("launch-timeout", 1800),
    bootTimeoutMs: from.milliseconds("boot-timeout", 60),
    launchAttempts: Math.max(1, Math.floor(from.number("launch-retries", 3))),
    own: { machines: readMachines(from), signingKeys, epoch },
  };
}

function readPool(
  pool: Reader,
  base: NonNullable<ReturnType<typeof readCommonPool>>,
  keys: readonly string[],
  context: LoadContext,
): SliverPoolConfig {
  const labels = pool.mappings("labels").flatMap((at) => {
    const label = readLabel(at, keys);
    return label === undefined ? [] : [[at, label] as const];
  });
  const limits = {
    ...base.limits,
    ...readLimits(pool, { millicores: "max-millicores", ram: "max-ram" }),
  };
  const rest = { availabilityZones: [], useInternalIp: false, own: undefined };
  return { ...base, limits, labels: labelMap(pool, labels, context), ...rest };
}
