import { isDeepStrictEqual } from "node:util";
import type { Config } from "./types.ts";

/** What a reload changed, by name. */
export interface ConfigDiff {
  readonly providersAdded: readonly string[];
  readonly providersRemoved: readonly string[];
  /** Providers that are opened again; work in progress ends on the former one. */
  readonly providersChanged: readonly string[];
  /** Top-level labels that were added, removed or have other settings. */
  readonly labelsChanged: readonly string[];
  /** Servers only: the live client is given them. */
  readonly zookeeperServersChanged: boolean;
  /** Chroot, TLS or timeout: only a restart takes them up. */
  readonly zookeeperNeedsRestart: boolean;
  /** Whether address or TLS settings changed; the content of certificate files can be read again without a restart. */
  readonly webappNeedsRestart: boolean;
  readonly issuersChanged: boolean;
  readonly limitsChanged: boolean;
  readonly logLevelsChanged: boolean;
  /** Whether diskimages, their build settings or their providers changed. */
  readonly imagesChanged: boolean;
  readonly any: boolean;
}

/** Compares compiled values, so that the order of keys, defaults written out and comments change nothing. */
export function diffConfig(before: Config, after: Config): ConfigDiff {
  const [old, now] = [byName(before.providers), byName(after.providers)];
  const changes = {
    providersAdded: [...now.keys()].filter((name) => !old.has(name)),
    providersRemoved: [...old.keys()].filter((name) => !now.has(name)),
    providersChanged: [...now].flatMap(([name, provider]) =>
      old.has(name) && !isDeepStrictEqual(old.get(name), provider) ? [name] : [],
    ),
    labelsChanged: [...new Set([...before.labels.keys(), ...after.labels.keys()])].filter(
      (name) => !isDeepStrictEqual(before.labels.get(name), after.labels.get(name)),
    ),
    zookeeperServersChanged: !isDeepStrictEqual(before.zookeeper.servers, after.zookeeper.servers),
    zookeeperNeedsRestart: !isDeepStrictEqual(
      { ...before.zookeeper, servers: [] },
      { ...after.zookeeper, servers: [] },
    ),
    webappNeedsRestart: !isDeepStrictEqual({ ...before.webapp, oidc: [] }, { ...after.webapp, oidc: [] }),
    issuersChanged: !isDeepStrictEqual(before.webapp.oidc, after.webapp.oidc),
    logLevelsChanged: !isDeepStrictEqual(before.logLevels, after.logLevels),
    imagesChanged: !isDeepStrictEqual(before.builder, after.builder),
    limitsChanged:
      before.maxHoldAgeMs !== after.maxHoldAgeMs ||
      before.failedLaunchesPerHour !== after.failedLaunchesPerHour ||
      !isDeepStrictEqual(before.journal, after.journal) ||
      !isDeepStrictEqual(before.shares, after.shares) ||
      !isDeepStrictEqual(before.budgets, after.budgets) ||
      !isDeepStrictEqual(before.tenantLimits, after.tenantLimits),
  };
  return {
    ...changes,
    any: Object.values(changes).some((change) => (Array.isArray(change) ? change.length > 0 : change)),
  };
}

function byName<T extends { readonly name: string }>(items: readonly T[]): ReadonlyMap<string, T> {
  return new Map(items.map((item) => [item.name, item]));
}
