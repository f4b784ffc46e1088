import {
  type LabelConfig,
  type LoadContext,
  Reader,
  readCommonPool,
  readCommonProvider,
  uniquePools,
} from "@nodeyard/driver";
import type { StaticHost, StaticPoolConfig, StaticProviderConfig } from "../own.ts";
import { readHosts } from "./hosts.ts";

/** Compiles a provider mapping; every default of the driver is applied here and in hosts.ts. */
export function load(raw: Readonly<Record<string, unknown>>, context: LoadContext): StaticProviderConfig {
  const from = new Reader(raw, [], (finding) => context.report(finding));
  const common = readCommonProvider(from, "static");
  const seen = new Map<string, string>();
  const pools = from.mappings("pools").flatMap((pool): StaticPoolConfig[] => {
    const base = readCommonPool(pool, common);
    if (base === undefined) return [];
    const hosts = readHosts(pool, seen);
    reportUnknownLabels(pool, hosts, context);
    return [
      { ...base, labels: labelsOf(hosts), availabilityZones: [], useInternalIp: false, own: { hosts } },
    ];
  });
  return {
    ...common,
    pools: uniquePools(from, pools),
    // Nothing is launched, so these only have to be sensible.
    launchTimeoutMs: 3_600_000,
    bootTimeoutMs: 60_000,
    launchAttempts: 1,
    own: {},
  };
}

function reportUnknownLabels(pool: Reader, hosts: readonly StaticHost[], context: LoadContext): void {
  for (const host of hosts) {
    for (const label of host.labels) {
      if (context.labels.has(label)) continue;
      const index = pool.mappings("nodes").findIndex((node) => node.raw.name === host.name);
      const at = pool.mappings("nodes")[index] ?? pool;
      at.error("labels", `names label ${label}, which is not in the top-level labels; add it there`);
    }
  }
}

/** What the pool offers: the labels of all its hosts, each with the settings of the first host that has it. */
function labelsOf(hosts: readonly StaticHost[]): ReadonlyMap<string, LabelConfig> {
  const labels = new Map<string, LabelConfig>();
  for (const { labels: names, connection, hostKeyChecking } of hosts) {
    for (const name of names) {
      if (!labels.has(name))
        labels.set(name, { name, connection, hostKeyChecking, image: null, own: undefined });
    }
  }
  return labels;
}
