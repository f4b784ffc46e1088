import {
  type LoadContext,
  labelMap,
  Reader,
  readCommonPool,
  readCommonProvider,
  readLimits,
  uniquePools,
} from "@nodeyard/driver";
import type { FakePoolConfig, FakeProviderConfig } from "../own.ts";
import { readImages } from "./images.ts";
import { readKnobs } from "./knobs.ts";
import { type PoolFacts, readLabel } from "./label.ts";

const POOL_LIMITS = {
  cores: "max-cores",
  ram: "max-ram",
  volumes: "max-volumes",
  "volume-gb": "max-volume-gb",
};

/** Compiles a provider mapping; every default of the driver is applied in this folder. */
export function load(raw: Readonly<Record<string, unknown>>, context: LoadContext): FakeProviderConfig {
  const from = new Reader(raw, [], (finding) => context.report(finding));
  const common = readCommonProvider(from, "fake");
  const images = readImages(from, context);
  const pools = from.mappings("pools").flatMap((pool): FakePoolConfig[] => {
    const base = readCommonPool(pool, common);
    if (base === undefined) return [];
    const facts: PoolFacts = { images, hostKeyChecking: pool.flag("host-key-checking", true) };
    const labels = pool.mappings("labels").flatMap((at) => {
      const label = readLabel(at, facts, context);
      return label === undefined ? [] : [[at, label] as const];
    });
    return [
      {
        ...base,
        limits: { ...base.limits, ...readLimits(pool, POOL_LIMITS) },
        labels: labelMap(pool, labels, context),
        availabilityZones: pool.has("availability-zones") ? pool.texts("availability-zones") : [],
        useInternalIp: false,
        ignoreProviderQuota: pool.flag("ignore-provider-quota", false),
        own: { networks: pool.has("networks") ? pool.texts("networks") : [] },
      },
    ];
  });
  return {
    ...common,
    pools: uniquePools(from, pools),
    launchTimeoutMs: from.milliseconds("launch-timeout", 3600),
    bootTimeoutMs: from.milliseconds("boot-timeout", 60),
    launchAttempts: Math.max(1, Math.floor(from.number("launch-retries", 3))),
    own: {
      cloud: from.text("cloud", common.name),
      knobs: readKnobs(from),
      journal: from.inner("fake").text("journal", null),
    },
  };
}
