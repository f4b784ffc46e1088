import type { ProviderConfig } from "@nodeyard/driver";
import { folderProvider, slotsPath } from "../../operations/index.ts";
import type { View } from "../../view/index.ts";
import { METASTATIC, metastaticDriver } from "./driver.ts";

/**
 * Providers whose slots a Nodeyard launcher gave out, as the folders of their backing nodes say, and of which no launcher of any kind
 * has a pool registered.
 */
export function unservedProviders({
  own,
  components,
}: Pick<View, "own" | "components">): ReadonlySet<string> {
  const left = new Set<string>();
  for (const [path, { data }] of own) {
    if (slotsPath(path)?.kind !== "folder") continue;
    const provider = folderProvider(data);
    if (provider !== null) left.add(provider);
  }
  for (const { kind, record } of components.values())
    if (kind === "pool" && record.state !== "stopped" && record.providerName !== null)
      left.delete(record.providerName);
  return left;
}

/** The configuration of a provider of which nothing is configured: it has no pools, so that nothing is launched or asked for. */
export function withoutPools(provider: string): ProviderConfig {
  const raw = { name: provider, driver: METASTATIC, pools: [] };
  const nothing = { labels: new Set<string>(), diskimages: new Map(), report: () => {} };
  const config = metastaticDriver.config.load(raw, nothing);
  if (config === undefined) throw new TypeError(`no provider can be named ${provider}`);
  return config;
}
